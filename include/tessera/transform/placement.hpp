// SPDX-License-Identifier: Apache-2.0
// Offsets of temporaries: in the arena, or in results that are not written yet, as their lifetimes allow.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/memory.hpp>
#include <tessera/transform/result_space.hpp>

#include <algorithm>

namespace tessera::transform {

/// A temporary that dies in the very step that makes a result of its size, read in place: the result takes it over.
/// `heir[b]` is the buffer that lies where `b` lay, `root[b]` the first of its line.
struct inheritance {
  graph::list<int> root{};
  graph::list<int> dies{};

  constexpr inheritance(const graph::program& p, const lifetimes& lives, graph::space where) : dies(lives.dies) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b) root.push_back(static_cast<int>(b));
    if (where != graph::space::temporary) return;
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      const graph::step& s = p.steps[i];
      graph::list<int> given;
      for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r) {
        const int to = p.accesses[static_cast<std::size_t>(r)].buffer;
        if (!is_temporary(p, to) ||
            lives.born[static_cast<std::size_t>(to)] != lives.start_of_group(static_cast<int>(i)))
          continue;
        for (int a = s.first; a < s.first + s.sources; ++a) {
          const int from = p.accesses[static_cast<std::size_t>(a)].buffer;
          const bool paired = s.kind != graph::step_kind::all_reduce || a - s.first == r - s.first - s.sources;
          if (!paired || !is_temporary(p, from) || std::find(given.begin(), given.end(), from) != given.end() ||
              !may_take_over(p, lives, static_cast<int>(i), from, to))
            continue;
          given.push_back(from);
          const int line = root[static_cast<std::size_t>(from)];
          root[static_cast<std::size_t>(to)] = line;
          dies[static_cast<std::size_t>(line)] = lives.dies[static_cast<std::size_t>(to)];
          break;
        }
      }
    }
  }

  static constexpr bool is_temporary(const graph::program& p, int b) {
    return b >= 0 && p.buffers[static_cast<std::size_t>(b)].where == graph::space::temporary;
  }
};

/// Puts the buffers of an arena at offsets: each at the lowest place that is free during its life. Buffers that follow
/// one another are placed together.
struct placement {
  graph::program& p;
  const lifetimes lives;
  const inheritance lines;
  graph::list<int> follower{};  ///< by buffer: the one that follows it, or -1
  graph::list<int> placed{};    ///< by offset
  const result_space space;
  graph::list<int> hosts{};   ///< buffers of the program's results
  graph::list<int> guests{};  ///< temporaries that lie in one of them
  std::int64_t total = 0;

  constexpr placement(graph::program& program, graph::space where)
      : p(program),
        lives(program),
        lines(program, lives, where),
        follower(program.buffers.size(), -1),
        space(program, lives) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (const int before = p.buffers[b].follows; before >= 0)
        follower[static_cast<std::size_t>(before)] = static_cast<int>(b);
    if (where != graph::space::temporary) return;
    for (const graph::interface_value& result : p.results)
      if (at(result.buffer).where == graph::space::result) hosts.push_back(result.buffer);
  }

  /// Puts a line of buffers into a result that is not written before the line dies, if there is room.
  constexpr bool place_in_result(int b) {
    if (follower[static_cast<std::size_t>(b)] >= 0) return false;
    for (int host : hosts) {
      if (at(host).varying != at(b).varying) continue;
      const std::int64_t offset = free_in_result(host, b);
      if (offset < 0) continue;
      at(b).where = graph::space::window;
      at(b).place = host;
      at(b).offset = offset;
      const auto after =
          std::find_if(guests.begin(), guests.end(), [&](int other) { return at(other).offset > offset; });
      guests.insert(after, b);
      return true;
    }
    return false;
  }

  /// The lowest offset in a result where a line of buffers is in nobody's way, or -1.
  constexpr std::int64_t free_in_result(int host, int b) const {
    const int dies = lines.dies[static_cast<std::size_t>(b)];
    const bool alone = dies == lives.dies[static_cast<std::size_t>(b)];
    std::int64_t offset = 0;
    for (std::int64_t blocked = 0; blocked >= 0;) {
      if (offset + at(b).bytes > at(host).bytes) return -1;
      blocked = space.blocked_until(static_cast<int>(at(host).place), b, offset, dies, alone);
      for (int other : guests) {
        const graph::buffer& guest = at(other);
        if (guest.place == host && together(b, other) && guest.offset < offset + aligned(at(b).bytes) &&
            offset < guest.offset + aligned(guest.bytes))
          blocked = std::max(blocked, guest.offset + guest.bytes);
      }
      if (blocked >= 0) offset = aligned(blocked);
    }
    return offset;
  }

  constexpr graph::buffer& at(int b) { return p.buffers[static_cast<std::size_t>(b)]; }
  constexpr const graph::buffer& at(int b) const { return p.buffers[static_cast<std::size_t>(b)]; }
  constexpr std::int64_t bytes(int b) const {
    return follower[static_cast<std::size_t>(b)] >= 0 ? at(b).bytes : aligned(at(b).bytes);
  }

  /// Whether two lines of buffers hold something at the same time.
  constexpr bool together(int a, int b) const {
    return lives.born[static_cast<std::size_t>(a)] <= lines.dies[static_cast<std::size_t>(b)] &&
           lives.born[static_cast<std::size_t>(b)] <= lines.dies[static_cast<std::size_t>(a)];
  }

  /// The lowest offset where the chain that starts with `b` is in nobody's way.
  constexpr std::int64_t free_offset(int b) {
    std::int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      std::int64_t before = 0;
      for (int part = b; part >= 0; part = follower[static_cast<std::size_t>(part)]) {
        for (int other : placed) {
          const std::int64_t end = at(other).place + bytes(other);
          const std::int64_t start = offset + before;
          if (!together(part, other) || at(other).place >= start + bytes(part) || end <= start) continue;
          offset = aligned(end - before);
          moved = follower[static_cast<std::size_t>(b)] >= 0;
        }
        before += bytes(part);
      }
    }
    return offset;
  }

  constexpr void place(int b) {
    if (place_in_result(b)) return;
    std::int64_t offset = free_offset(b);
    for (int part = b; part >= 0; part = follower[static_cast<std::size_t>(part)]) {
      at(part).place = offset;
      const auto after =
          std::find_if(placed.begin(), placed.end(), [&](int other) { return at(other).place > offset; });
      placed.insert(after, part);
      offset += bytes(part);
      total = std::max(total, offset);
    }
  }
};

/// What a trip makes of a slice of a stack lies in that slice, if the step reads the slice element by element and it is
/// the last one to read it, in the loop at whose end the stack dies.
constexpr void reuse_slices(graph::program& p) {
  const lifetimes lives(p);
  const result_space space(p, lives);
  for (const loop_span& loop : lives.loops)
    for (int i = loop.first + 1; i <= loop.last; ++i) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      if (s.kind != graph::step_kind::fused) continue;
      graph::list<int> given;
      for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r) {
        const int to = p.accesses[static_cast<std::size_t>(r)].buffer;
        graph::buffer& made = p.buffers[static_cast<std::size_t>(to)];
        if (made.where != graph::space::temporary || made.follows >= 0 || maker_of(p, lives, to) != i ||
            lives.dies[static_cast<std::size_t>(to)] >= loop.last)
          continue;
        for (int a = s.first; a < s.first + s.sources && made.where == graph::space::temporary; ++a) {
          const int from = p.accesses[static_cast<std::size_t>(a)].buffer;
          if (from < 0 || std::find(given.begin(), given.end(), from) != given.end()) continue;
          const graph::buffer& slice = p.buffers[static_cast<std::size_t>(from)];
          const sliced_reads& reads = space.slices[static_cast<std::size_t>(p.whole_buffer(from))];
          if (slice.where != graph::space::window || reads.loop == nullptr || reads.loop->number != loop.number ||
              reads.last != i || slice.bytes != made.bytes || slice.varying != made.varying ||
              !reads_in_place(p, s, from))
            continue;
          // A stack that could lie in a result as it is stays so.
          const int stays = lives.end_of_loops_within(loop, lives.dies[static_cast<std::size_t>(to)]);
          if (space.fits_a_result(reads, reads.last) && !space.fits_a_result(reads, stays)) continue;
          made = slice;
          given.push_back(from);
        }
      }
    }
}

/// Offsets for all temporaries, or for all that lies in host memory, largest first. Returns the size of the arena.
constexpr std::int64_t place_buffers(graph::program& p, graph::space where = graph::space::temporary) {
  placement places(p, where);
  graph::list<int> order;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].where == where && places.lines.root[b] == static_cast<int>(b) && places.lives.born[b] >= 0 &&
        p.buffers[b].follows < 0)
      order.push_back(static_cast<int>(b));
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const std::int64_t left = p.buffers[static_cast<std::size_t>(a)].bytes;
    const std::int64_t right = p.buffers[static_cast<std::size_t>(b)].bytes;
    return left != right ? left > right : a < b;
  });
  for (int b : order) places.place(b);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const graph::buffer& root = p.buffers[static_cast<std::size_t>(places.lines.root[b])];
    if (p.buffers[b].where != where) continue;
    p.buffers[b].where = root.where;
    p.buffers[b].place = root.place;
    p.buffers[b].offset = root.offset;
  }
  return aligned(places.total);
}

}  // namespace tessera::transform
