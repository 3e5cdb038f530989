// SPDX-License-Identifier: Apache-2.0
// Graph to graph: products of 16-bit numbers that only their rounding reads are rounded as they are made.
#pragma once

#include <tessera/graph/graph.hpp>

namespace tessera::transform {

using graph::op;

/// How often each node is read or given.
constexpr graph::list<int> counted_reads(const graph::graph& g) {
  graph::list<int> reads(g.nodes.size(), 0);
  for (const graph::node& n : g.nodes)
    for (int k = 0; k < n.operand_count(); ++k) ++reads[static_cast<std::size_t>(n.operands[k])];
  for (const graph::output& o : g.outputs) ++reads[static_cast<std::size_t>(o.node)];
  return reads;
}

/// The product that node `id` rounds to the type of its operands, if nothing else reads it; or -1.
constexpr int rounded_product(const graph::graph& g, const graph::list<int>& reads, int id) {
  const graph::node& n = g.at(id);
  if (n.code != op::convert || !is_sixteen_bit(n.type.type)) return -1;
  const int product = n.operands[0];
  const graph::node& p = g.at(product);
  const bool fits = p.code == op::dot && p.type.type == dtype::f32 && reads[static_cast<std::size_t>(product)] == 1;
  if (!fits) return -1;
  for (int k = 0; k < 2; ++k)
    if (g.type(p.operands[k]).type != n.type.type) return -1;
  return product;
}

/// Their float32 results are never arrays: kernels sum in float32 and round once, so no bit changes. Sums over devices
/// are nodes between a product and its rounding here, and keep it as it is.
constexpr graph::graph narrow_products(graph::graph g) {
  for (graph::graph& body : g.bodies) body = narrow_products(body);
  const graph::list<int> reads = counted_reads(g);
  graph::list<int> place(g.nodes.size(), -1);
  for (int i = 0; i < g.size(); ++i) {
    graph::node& n = g.at(i);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    const int product = rounded_product(g, reads, i);
    if (product >= 0) g.at(product).type.type = n.type.type;
    place[static_cast<std::size_t>(i)] = product >= 0 ? product : i;
  }
  for (graph::output& o : g.outputs) o.node = place[static_cast<std::size_t>(o.node)];
  return g;
}

}  // namespace tessera::transform
