// SPDX-License-Identifier: Apache-2.0
// Memory of results as scratch: which bytes of a result are still free, and until when.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>

#include <algorithm>

namespace tessera::transform {

/// The bytes of a whole buffer that an access reaches in all trips of the loops around it, and how they move.
struct reach {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int step = -1;
  const loop_span* loop = nullptr;  ///< the one loop it moves in, if no loop is around that one
  std::int64_t first = 0;           ///< where it starts in trip 0,
  std::int64_t bytes = 0;           ///< how far it goes,
  std::int64_t stride = 0;          ///< and how far it moves a trip

  constexpr bool overlaps(std::int64_t from, std::int64_t to) const { return begin < to && from < end; }
};

/// What an access to buffer `b` in step `i` reaches.
constexpr reach reach_of(const graph::program& p, const lifetimes& lives, int b, int i) {
  reach r{.step = lives.start_of_group(i)};
  r.bytes = p.buffers[static_cast<std::size_t>(b)].bytes;
  std::int64_t span = 0;
  int moving = 0;
  for (; p.buffers[static_cast<std::size_t>(b)].where == graph::space::window;
       b = static_cast<int>(p.buffers[static_cast<std::size_t>(b)].place)) {
    const graph::buffer& window = p.buffers[static_cast<std::size_t>(b)];
    r.first += window.offset;
    if (window.loop < 0 || window.stride == 0) continue;
    r.loop = lives.loop_with_number(window.loop);
    r.stride = window.stride;
    span += (r.loop->trips - 1) * window.stride;
    ++moving;
  }
  r.begin = r.first;
  r.end = r.first + span + r.bytes;
  if (moving != 1 || lives.outermost(i) != r.loop) r.loop = nullptr;
  return r;
}

/// A buffer that is read slice by slice in a loop, and for the last time there.
struct sliced_reads {
  const loop_span* loop = nullptr;
  std::int64_t stride = 0;
  int last = -1;  ///< the step of a trip that reads it last
};

/// The parts of results that are written, and the stacks that are read in slices while that happens.
struct result_space {
  const graph::program& p;
  const lifetimes& lives;
  graph::list<graph::list<reach>> written{};  ///< by result
  graph::list<sliced_reads> slices{};         ///< by buffer

  constexpr result_space(const graph::program& program, const lifetimes& lifetimes_in)
      : p(program), lives(lifetimes_in) {
    written.resize(p.results.size());
    slices.resize(p.buffers.size());
    graph::list<char> whole(p.buffers.size(), 0);
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      if (graph::is_control(s.kind)) continue;
      for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
        const int b = p.accesses[static_cast<std::size_t>(a)].buffer;
        if (b < 0) continue;
        const int root = p.whole_buffer(b);
        const graph::buffer& memory = p.buffers[static_cast<std::size_t>(root)];
        if (memory.where == graph::space::result && a >= s.first + s.sources)
          written[static_cast<std::size_t>(memory.place)].push_back(reach_of(p, lives, b, i));
        if (memory.where == graph::space::temporary) note_slice(root, b, i, whole);
      }
    }
  }

  /// Looks at an access in the loop at whose end `root` dies.
  constexpr void note_slice(int root, int b, int i, graph::list<char>& whole) {
    const auto at = static_cast<std::size_t>(root);
    const loop_span* loop = lives.outermost(i);
    if (loop == nullptr || loop->last != lives.dies[at] || lives.born[at] >= loop->first || whole[at]) return;
    const reach r = reach_of(p, lives, b, i);
    sliced_reads& noted = slices[at];
    const bool slice = r.loop == loop && r.first >= 0 && r.first + r.bytes <= r.stride &&
                       (noted.loop == nullptr || noted.stride == r.stride);
    if (slice) noted = {loop, r.stride, std::max(noted.last, lives.end_of_loops_within(*loop, lives.end_of_group(i)))};
    else noted = {}, whole[at] = 1;
  }

  /// Whether slices of `b`, which starts at `offset` of the result, have all been read when a later trip of the same
  /// loop writes `part` over them.
  constexpr bool read_before_written(int b, std::int64_t offset, const reach& part) const {
    const sliced_reads& reads = slices[static_cast<std::size_t>(b)];
    if (part.loop == nullptr || reads.loop != part.loop || reads.last >= part.step || reads.stride > part.stride)
      return false;
    const std::int64_t faster = part.stride - reads.stride;
    if (part.loop->backwards) return offset <= part.first + faster;
    return offset >= part.first + part.bytes - reads.stride + std::max<std::int64_t>(part.loop->trips - 2, 0) * faster;
  }

  /// Whether slices that are read like these, for the last time in step `last`, can lie in some result that the same
  /// loop writes.
  constexpr bool fits_a_result(const sliced_reads& reads, int last) const {
    for (const graph::list<reach>& parts : written)
      for (const reach& part : parts)
        if (part.loop == reads.loop && reads.stride <= part.stride && last < part.step) return true;
    return false;
  }

  /// Where the first part ends that `b` at `offset` of a result would be in the way of, or -1. `dies` is the last step
  /// that needs it.
  constexpr std::int64_t blocked_until(int result, int b, std::int64_t offset, int dies, bool alone) const {
    const std::int64_t end = offset + p.buffers[static_cast<std::size_t>(b)].bytes;
    for (const reach& part : written[static_cast<std::size_t>(result)]) {
      if (!part.overlaps(offset, end) || dies < lives.start_of_loops(part.step)) continue;
      if (!alone || !read_before_written(b, offset, part)) return part.end;
    }
    return -1;
  }
};

}  // namespace tessera::transform
