// SPDX-License-Identifier: Apache-2.0
// From which step to which the content of a buffer matters.
#pragma once

#include <tessera/graph/program.hpp>

#include <algorithm>

namespace tessera::transform {

/// A control step and the steps of its bodies.
struct loop_span {
  int first = 0;
  int last = 0;
  int number = -1;
  std::int64_t trips = 1;
  bool backwards = false;
};

/// When each buffer is first written and last read, in steps. What is there before a loop and used in it lives to the
/// loop's end, since the next trip needs it too. Windows live with the buffer they are part of. The steps of a row
/// group happen at once: what one of them uses is there from the first to the last. What runs with a product reads to
/// the end of the last of these steps.
struct lifetimes {
  graph::list<int> born{};
  graph::list<int> dies{};
  graph::list<graph::row_group> groups{};
  graph::list<int> group_at{};     ///< by step, if there are groups: the number of its group, or -1
  graph::list<int> joined_to{};    ///< by step: the last of those that run as one with it
  graph::list<loop_span> loops{};  ///< outer ones before inner ones

  constexpr explicit lifetimes(const graph::program& p)
      : born(p.buffers.size(), -1), dies(p.buffers.size(), -1), groups(p.groups) {
    if (!groups.empty()) group_at.resize(p.steps.size(), -1);
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (int i = groups[g].first; i < groups[g].first + groups[g].count; ++i)
        group_at[static_cast<std::size_t>(i)] = static_cast<int>(g);
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) joined_to.push_back(graph::joined_steps(p, i).last);
    const auto for_each_use = [&](int i, auto use) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      for (int a = s.first; a < s.first + s.sources + s.results; ++a)
        if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
          use(static_cast<std::size_t>(p.whole_buffer(b)));
    };
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      for_each_use(i, [&](std::size_t b) {
        if (born[b] < 0) born[b] = start_of_group(i);
        dies[b] = end_of_group(i);
      });
      if (!graph::is_control(s.kind)) continue;
      loops.push_back({i, i + static_cast<int>(graph::steps_inside(s)), static_cast<int>(s.sizes[graph::loop_number]),
                       s.sizes[graph::trips], s.sizes[graph::backwards] != 0});
    }
    for (const loop_span& loop : loops)
      for (int i = loop.first; i <= loop.last; ++i)
        for_each_use(i, [&](std::size_t b) {
          if (born[b] <= loop.first) dies[b] = std::max(dies[b], loop.last);
        });
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const auto whole = static_cast<std::size_t>(p.whole_buffer(static_cast<int>(b)));
      born[b] = born[whole];
      dies[b] = dies[whole];
    }
  }

  /// The row group that step `i` belongs to, or null.
  constexpr const graph::row_group* group_of(int i) const {
    return group_at.empty() || group_at[static_cast<std::size_t>(i)] < 0
               ? nullptr
               : &groups[static_cast<std::size_t>(group_at[static_cast<std::size_t>(i)])];
  }

  /// The first and the last step of the row group that step `i` belongs to, or `i`.
  constexpr int start_of_group(int i) const { return group_of(i) ? group_of(i)->first : i; }
  constexpr int end_of_group(int i) const {
    return group_of(i) ? group_of(i)->first + group_of(i)->count - 1 : joined_to[static_cast<std::size_t>(i)];
  }

  /// The outermost loop that step `i` belongs to, or null.
  constexpr const loop_span* outermost(int i) const {
    for (const loop_span& loop : loops)
      if (loop.first <= i && i <= loop.last) return &loop;
    return nullptr;
  }

  /// The first and the last step of all loops that step `i` belongs to, or `i`.
  constexpr int start_of_loops(int i) const { return outermost(i) ? outermost(i)->first : i; }
  constexpr int end_of_loops(int i) const { return outermost(i) ? outermost(i)->last : i; }

  /// The last step of all loops within `outer` that step `i` belongs to, or `i`.
  constexpr int end_of_loops_within(const loop_span& outer, int i) const {
    for (const loop_span& loop : loops)
      if (outer.first < loop.first && loop.first <= i && i <= loop.last) return loop.last;
    return i;
  }

  constexpr const loop_span* loop_with_number(int number) const {
    for (const loop_span& loop : loops)
      if (loop.number == number) return &loop;
    return nullptr;
  }
};

/// Whether the step writes parts of what its first source holds.
constexpr bool updates_base(const graph::step& s) {
  return s.kind == graph::step_kind::update_slice || s.kind == graph::step_kind::scatter ||
         s.kind == graph::step_kind::dynamic_update;
}

/// Whether there is such a source; without one there is nothing to keep.
constexpr bool has_base(const graph::step& s) { return s.sources > 1; }

/// Whether a step that runs as one with `s`, a step of `p`, reads `b` too.
constexpr bool is_read_beside(const graph::program& p, const graph::step& s, int b) {
  const auto here = static_cast<int>(&s - &p.steps[0]);
  const graph::step_range range = graph::joined_steps(p, here);
  for (int i = range.first; i <= range.last; ++i) {
    const graph::step& other = p.steps[static_cast<std::size_t>(i)];
    for (int a = other.first; i != here && a < other.first + other.sources; ++a)
      if (const int read = p.accesses[static_cast<std::size_t>(a)].buffer;
          read >= 0 && p.whole_buffer(read) == p.whole_buffer(b))
        return true;
  }
  return false;
}

/// Whether step `s` of `p` reads `b` only element by element, just where it writes its results, so that a result may
/// take over the memory.
constexpr bool reads_in_place(const graph::program& p, const graph::step& s, int b) {
  if (is_read_beside(p, s, b)) return false;
  if (s.kind == graph::step_kind::all_reduce || s.kind == graph::step_kind::softmax ||
      s.kind == graph::step_kind::log_softmax)
    return true;
  if (updates_base(s)) {
    for (int a = s.first + 1; a < s.first + s.sources; ++a)
      if (p.accesses[static_cast<std::size_t>(a)].buffer == b) return false;
    return has_base(s);
  }
  if (s.kind != graph::step_kind::fused) return false;
  for (int a = s.first; a < s.first + s.sources; ++a) {
    const graph::access& read = p.accesses[static_cast<std::size_t>(a)];
    if (read.buffer != b) continue;
    std::int64_t stride = 1;
    for (int d = s.rank - 1; d >= 0; --d) {
      if (read.strides[d] != stride) return false;
      stride *= s.sizes[d];
    }
    if (read.slice_axes != 0 || read.offset != 0) return false;
  }
  return true;
}

}  // namespace tessera::transform
