// SPDX-License-Identifier: Apache-2.0
// Derivatives of operations that take parts of arrays and put arrays together: each is the other's transpose.
#pragma once

#include <tessera/graph/layout.hpp>

namespace tessera::transform {

using graph::op;
using graph::value;

/// Cotangents of a node's operands, in order; an id of -1 says that no gradient flows.
struct cotangents {
  value of[3]{};
};

/// Zeros of the dtype of `ct` and the extents and cuts of `like`.
constexpr value zeros_of(value ct, aval like) {
  like.type = ct.type().type;
  return graph::full(ct.owner, like, 0);
}

/// The part goes back to where it was taken from.
constexpr cotangents slice_cotangents(const graph::node& n, const aval& operand, value ct) {
  return {{graph::update_slice(zeros_of(ct, operand), ct, graph::slices_of(n, n.type))}};
}

/// The base keeps what was not replaced.
constexpr cotangents update_slice_cotangents(const graph::node& n, const aval& piece, value ct) {
  const sharding::slices taken = graph::slices_of(n, piece);
  return {{graph::update_slice(ct, zeros_of(ct, piece), taken), graph::slice(ct, taken)}};
}

/// Cotangents of the operands of node `id`, given that of its result.
constexpr cotangents layout_cotangents(graph::graph& g, int id, value ct) {
  const graph::node n = g.at(id);
  const auto type = [&](int k) { return g.type(n.operands[k]); };
  switch (n.code) {
    case op::slice: return slice_cotangents(n, type(0), ct);
    case op::update_slice: return update_slice_cotangents(n, type(1), ct);
    default: return {};
  }
}

}  // namespace tessera::transform
