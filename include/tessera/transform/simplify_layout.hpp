// SPDX-License-Identifier: Apache-2.0
// Slices that need not look at updates, and sums of arrays that are zero where the other one is not.
#pragma once

#include <tessera/graph/layout.hpp>

#include <bit>

namespace tessera::transform {

using graph::op;

/// Whether no element is in both of two parts of an array: their ranges along some dimension do not meet.
constexpr bool apart(const sharding::slices& a, const sharding::slices& b, int rank) {
  for (int d = 0; d < rank; ++d) {
    const auto first = [](const sharding::dim_slice& s) {
      return s.start + (s.stride < 0 ? (s.count - 1) * s.stride : 0);
    };
    const auto last = [](const sharding::dim_slice& s) {
      return s.start + (s.stride > 0 ? (s.count - 1) * s.stride : 0);
    };
    if (a.of[d].count == 0 || b.of[d].count == 0) return true;
    if (last(a.of[d]) < first(b.of[d]) || last(b.of[d]) < first(a.of[d])) return true;
  }
  return false;
}

constexpr bool same_part(const sharding::slices& a, const sharding::slices& b, int rank) {
  for (int d = 0; d < rank; ++d)
    if (!(a.of[d] == b.of[d])) return false;
  return true;
}

/// The part that an update_slice node writes.
constexpr sharding::slices written_part(const graph::graph& g, const graph::node& update) {
  return graph::slices_of(update, g.type(update.operands[1]));
}

/// A slice of an updated array is one of the array below if the update is elsewhere. Returns the node that the slice
/// is, where it is the very piece that was written, else -1.
constexpr int skip_updates(const graph::graph& g, graph::node& n) {
  if (n.code != op::slice) return -1;
  const sharding::slices taken = graph::slices_of(n, n.type);
  for (;;) {
    const graph::node& update = g.at(n.operands[0]);
    if (update.code != op::update_slice) return -1;
    const sharding::slices written = written_part(g, update);
    if (same_part(taken, written, n.type.rank) && g.type(update.operands[1]) == n.type) return update.operands[1];
    if (!apart(taken, written, n.type.rank)) return -1;
    n.operands[0] = update.operands[0];
  }
}

constexpr bool is_zeros(const graph::graph& g, int id) {
  if (g.at(id).code != op::broadcast) return false;
  const graph::node& number = g.at(g.at(id).operands[0]);
  return number.code == op::constant && std::bit_cast<std::uint64_t>(number.value) == 0;
}

/// Whether `id` is zeros with pieces written into them, none of them where `written` is.
constexpr bool zero_where(const graph::graph& g, int id, const sharding::slices& written) {
  bool any = false;
  for (; g.at(id).code == op::update_slice; id = g.at(id).operands[0], any = true)
    if (!apart(written_part(g, g.at(id)), written, g.type(id).rank)) return false;
  return any && is_zeros(g, id);
}

/// The elements of updated zeros that were written, if all of them lie along one dimension and are whole along others.
constexpr bool covers_all(const graph::graph& g, const graph::node& last) {
  const aval& type = last.type;
  int along = -1;
  std::int64_t written = 0;
  const graph::node* update = &last;
  for (;; update = &g.at(update->operands[0])) {
    if (update->code != op::update_slice) return written == type.dims[along].extent;
    const sharding::slices part = written_part(g, *update);
    for (int d = 0; d < type.rank; ++d) {
      if (part.of[d].is_all_of(type.dims[d].extent)) continue;
      if (along >= 0 && along != d) return false;
      along = d;
    }
    written += along < 0 ? 0 : part.of[along].count;
    if (along < 0) return false;
  }
}

/// The array that update `id` writes into, without what zeros were there first.
constexpr int without_zeros(graph::graph& g, int id) {
  if (g.at(id).code != op::update_slice) {
    graph::node nothing;
    nothing.code = op::empty;
    nothing.type = g.type(id);
    return g.add(nothing);
  }
  graph::node update = g.at(id);
  update.operands[0] = without_zeros(g, update.operands[0]);
  return g.add(update);
}

/// The sum of two arrays of zeros with pieces in different places is one array with all pieces, as the gradient of a
/// split is; where the pieces leave nothing out, the zeros are never written.
constexpr void join_updates(graph::graph& g, graph::node& n) {
  if (n.code != op::add) return;
  for (int k = 0; k < 2; ++k) {
    const graph::node& piece = g.at(n.operands[1 - k]);
    const int others = n.operands[k];
    if (piece.code != op::update_slice || !is_zeros(g, piece.operands[0])) continue;
    if (g.type(others) != n.type || piece.type != n.type || !zero_where(g, others, written_part(g, piece))) continue;
    graph::node joined = piece;
    joined.operands[0] = others;
    if (covers_all(g, joined)) joined.operands[0] = without_zeros(g, others);
    n = joined;
    return;
  }
}

}  // namespace tessera::transform
