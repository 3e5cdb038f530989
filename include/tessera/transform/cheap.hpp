// SPDX-License-Identifier: Apache-2.0
// What costs less to compute once more than to keep.
#pragma once

#include <tessera/graph/graph.hpp>
#include <tessera/sharding/dot_general.hpp>

namespace tessera::transform {

using graph::op;

/// Whether computing the node once more costs less than keeping it: no product, no reduction, no loop.
constexpr bool is_cheap(op code) {
  switch (about(code).kind) {
    case graph::op_kind::source:
    case graph::op_kind::elementwise:
    case graph::op_kind::view:
    case graph::op_kind::list:
    case graph::op_kind::transfer:
    case graph::op_kind::check: return code != op::parameter;
    case graph::op_kind::movement: return code != op::reshard;
    default: return false;
  }
}

/// The longest sum of a product that is computed once more: that of a head of attention.
inline constexpr std::int64_t light_sum = 128;

/// Whether the node is a softmax, or a batched product with short sums and at least as many elements as its operands
/// together: scores and weights of attention, a few operations a byte.
constexpr bool is_light(const graph::graph& g, int id) {
  const graph::node& n = g.at(id);
  if (n.code == op::softmax || n.code == op::log_softmax) return true;
  if (n.code != op::dot || n.attribute[2] == 0) return false;
  const aval& lhs = g.type(n.operands[0]);
  const sharding::dim_list contracted = graph::dot_dims_of(n).lhs_contracting;
  std::int64_t sum = 1;
  for (int i = 0; i < sharding::dim_count(contracted); ++i) sum *= lhs.dims[sharding::dim_at(contracted, i)].extent;
  return sum <= light_sum && n.type.size() >= lhs.size() + g.type(n.operands[1]).size();
}

}  // namespace tessera::transform
