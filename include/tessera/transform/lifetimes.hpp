// SPDX-License-Identifier: Apache-2.0
// From which step to which the content of a buffer matters.
#pragma once

#include <tessera/graph/program.hpp>

#include <algorithm>

namespace tessera::transform {

/// When each buffer is first written and last read, in steps. What is there before a loop and used in it lives to the
/// loop's end, since the next trip needs it too. Windows live with the buffer they are part of.
struct lifetimes {
  graph::list<int> born{};
  graph::list<int> dies{};
  graph::list<int> loop_first{};  ///< control steps, and
  graph::list<int> loop_last{};   ///< the last steps of their bodies

  constexpr explicit lifetimes(const graph::program& p) : born(p.buffers.size(), -1), dies(p.buffers.size(), -1) {
    const auto for_each_use = [&](int i, auto use) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      for (int a = s.first; a < s.first + s.sources + s.results; ++a)
        if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
          use(static_cast<std::size_t>(p.whole_buffer(b)));
    };
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      for_each_use(i, [&](std::size_t b) {
        if (born[b] < 0) born[b] = i;
        dies[b] = i;
      });
      if (!graph::is_control(s.kind)) continue;
      loop_first.push_back(i);
      loop_last.push_back(i + static_cast<int>(graph::steps_inside(s)));
    }
    for (std::size_t l = 0; l < loop_first.size(); ++l)
      for (int i = loop_first[l]; i <= loop_last[l]; ++i)
        for_each_use(i, [&](std::size_t b) {
          if (born[b] <= loop_first[l]) dies[b] = std::max(dies[b], loop_last[l]);
        });
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const auto whole = static_cast<std::size_t>(p.whole_buffer(static_cast<int>(b)));
      born[b] = born[whole];
      dies[b] = dies[whole];
    }
  }

  /// The last step of all loops that step `i` belongs to, or `i`.
  constexpr int end_of_loops(int i) const {
    int end = i;
    for (std::size_t l = 0; l < loop_first.size(); ++l)
      if (loop_first[l] <= i && i <= loop_last[l]) end = std::max(end, loop_last[l]);
    return end;
  }
};

/// Whether the step writes parts of what its first source holds.
constexpr bool updates_base(const graph::step& s) {
  return s.kind == graph::step_kind::update_slice || s.kind == graph::step_kind::scatter ||
         s.kind == graph::step_kind::dynamic_update;
}

/// Whether there is such a source; without one there is nothing to keep.
constexpr bool has_base(const graph::step& s) { return s.sources > 1; }

/// Whether step `s` reads `b` only element by element, just where it writes its results, so that a result may take over
/// the memory.
constexpr bool reads_in_place(const graph::program& p, const graph::step& s, int b) {
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
