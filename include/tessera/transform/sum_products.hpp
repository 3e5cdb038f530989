// SPDX-License-Identifier: Apache-2.0
// Sums over devices that are taken while their terms are multiplied: program in, the same program with steps marked.
#pragma once

#include <tessera/graph/program.hpp>

namespace tessera::transform {

/// A product that only an all-reduce reads is a sum of products. Devices that share a process add theirs up while they
/// multiply, in the order the all-reduce would; it still is a collective of the program, and where devices do not share
/// memory it is one in fact. Terms of 16 bits are rounded before they are added up.
constexpr void sum_while_multiplying(graph::program& p) {
  graph::list<int> readers(p.buffers.size(), 0);
  graph::list<int> maker(p.buffers.size(), -1);
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const graph::step& s = p.steps[i];
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      const int b = p.accesses[static_cast<std::size_t>(a)].buffer;
      if (b < 0) continue;
      if (a < s.first + s.sources) ++readers[static_cast<std::size_t>(b)];
      else maker[static_cast<std::size_t>(b)] = static_cast<int>(i);
    }
  }
  for (const graph::step& s : p.steps) {
    if (s.kind != graph::step_kind::all_reduce || s.sizes[0] != static_cast<std::int64_t>(combine::sum)) continue;
    for (int a = s.first; a < s.first + s.sources; ++a) {
      const auto b = static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(a)].buffer);
      if (readers[b] != 1 || maker[b] < 0 || !is_floating(p.buffers[b].type) || is_sixteen_bit(p.buffers[b].type))
        continue;
      graph::step& product = p.steps[static_cast<std::size_t>(maker[b])];
      if (product.kind != graph::step_kind::dot || product.sizes[3] != 1) continue;
      product.axes = s.axes;
      p.buffers[b].summed = s.axes;
    }
  }
}

}  // namespace tessera::transform
