// SPDX-License-Identifier: Apache-2.0
// Derivatives of operations that take parts of arrays and put arrays together: each is the other's transpose.
#pragma once

#include <tessera/graph/gather.hpp>
#include <tessera/graph/layout.hpp>
#include <tessera/graph/windows.hpp>

namespace tessera::transform {

using graph::op;
using graph::value;

/// Cotangents of a node's operands, in order; an id of -1 says that no gradient flows.
struct cotangents {
  value of[3]{};
};

/// Zeros of the dtype of `ct` and the extents and cuts of `like`, unreduced and reduced as `ct` is.
constexpr value zeros_of(value ct, aval like) {
  like = with_marks(like, ct.type());
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

/// The same with a start that is known at run time; it has no cotangent.
constexpr cotangents dynamic_slice_cotangents(const graph::node& n, const aval& operand, value start, value ct) {
  return {{graph::dynamic_update_slice(zeros_of(ct, operand), ct, start, static_cast<int>(n.attribute[0]))}};
}
constexpr cotangents dynamic_update_cotangents(const graph::node& n, const aval& piece, value start, value ct) {
  const auto d = static_cast<int>(n.attribute[0]);
  return {{graph::dynamic_update_slice(ct, zeros_of(ct, piece), start, d),
           graph::dynamic_slice(ct, start, d, piece.dims[d].extent)}};
}

/// The elements of the cotangent go back to where they were read.
constexpr cotangents gather_cotangents(const graph::node& n, const aval& array, value indices, value ct) {
  return {{graph::scatter(zeros_of(ct, array), indices, ct, graph::indexing_of(n))}};
}

/// Which updates are the last ones of their places: bool, of the extents and cuts of `updates`. Each update writes its
/// number, from 1, and finds it again if nobody wrote later.
constexpr value last_updates(value indices, const aval& array, const aval& updates, sharding::indexing how) {
  graph::graph* owner = indices.owner;
  aval numbers_type = indices.type();
  numbers_type.type = dtype::i32;
  aval places = array;
  places.type = dtype::i32;
  const sharding::gather_dims dims(how, array.rank, numbers_type.rank);
  const int batch = how.pointwise ? how.axis : how.batch;
  if (!how.pointwise) {
    places = numbers_type;
    places.rank = how.batch + 1;
    for (int d = 0; d < max_rank; ++d) places.dims[d] = d < how.batch ? array.dims[d] : dim{};
    places.dims[how.batch] = array.dims[how.axis];
    how.axis = how.batch;
  }
  value numbers = graph::full(owner, numbers_type, 1);
  std::int64_t stride = 1;
  for (int d = how.pointwise ? how.axis : numbers_type.rank - 1; d >= batch; --d) {
    const value along = graph::write(owner, op::iota, numbers_type, {});
    owner->at(along.id).attribute[0] = static_cast<std::uint64_t>(d);
    numbers = numbers + along * static_cast<double>(stride);
    stride *= numbers_type.dims[d].extent;
  }
  how.kind = sharding::scatter_kind::set;
  const value winners = graph::scatter(graph::full(owner, places, 0), indices, numbers, how);
  const value last = graph::binary(op::eq, graph::gather(winners, indices, how, numbers_type), numbers);
  aval mask = updates;
  mask.type = dtype::bool_;
  sharding::dim_list spread = 0;
  for (int k = 0; k < numbers_type.rank; ++k)
    for (int d = 0; d < dims.rank; ++d)
      if (dims.of_indices[d] == k) spread = sharding::dim_append(spread, d);
  return graph::broadcast(last, mask, spread);
}

/// `array` at the indices, of the type of updates there, unreduced and reduced as `array` is.
constexpr value read_as(value array, value indices, const sharding::indexing& how, const aval& updates) {
  return graph::gather(array, indices, how, with_marks(updates, array.type()));
}

/// Of equal extrema each gets an equal share, as in a reduction.
constexpr cotangents extremum_scatter_cotangents(value array, value indices, value updates, value y,
                                                 sharding::indexing how, value ct) {
  const aval chosen = updates.type();
  const dtype type = array.type().type;
  const value kept = graph::binary(op::eq, array, y);
  const value won = graph::binary(op::eq, updates, graph::gather(y, indices, how, chosen));
  how.kind = sharding::scatter_kind::add;
  const value none = graph::zeros(ct.owner, array.type());
  const value ties = graph::convert(kept, type) + graph::scatter(none, indices, graph::convert(won, type), how);
  const value share = ct / ties;
  const value zero = graph::number_like(ct, 0);
  return {{graph::select(kept, share, zero), {}, graph::select(won, read_as(share, indices, how, chosen), zero)}};
}

constexpr cotangents scatter_cotangents(const graph::node& n, value array, value indices, value updates, value y,
                                        value ct) {
  const sharding::indexing how = graph::indexing_of(n);
  switch (how.kind) {
    case sharding::scatter_kind::add: return {{ct, {}, read_as(ct, indices, how, updates.type())}};
    case sharding::scatter_kind::set: {
      const value read = read_as(ct, indices, how, updates.type());
      const value last = last_updates(indices, without_marks(array.type()), without_marks(updates.type()), how);
      return {{graph::scatter(ct, indices, zeros_of(ct, updates.type()), how),
               {},
               graph::select(last, read, graph::number_like(ct, 0))}};
    }
    default: return extremum_scatter_cotangents(array, indices, updates, y, how, ct);
  }
}

/// Cotangents of the operands of node `id`, given that of its result.
constexpr cotangents layout_cotangents(graph::graph& g, int id, value ct) {
  const graph::node n = g.at(id);
  const auto operand = [&](int k) { return value{&g, n.operands[k]}; };
  const auto type = [&](int k) { return g.type(n.operands[k]); };
  switch (n.code) {
    case op::slice: return slice_cotangents(n, type(0), ct);
    case op::dynamic_slice: return dynamic_slice_cotangents(n, type(0), operand(1), ct);
    case op::dynamic_update: return dynamic_update_cotangents(n, type(1), operand(2), ct);
    case op::windows: return {{graph::overlap_add(ct, type(0), graph::windowing_of(n, n.type))}};
    case op::overlap_add: return {{graph::windows(ct, graph::windowing_of(n, type(0)))}};
    case op::gather: return gather_cotangents(n, type(0), operand(1), ct);
    case op::scatter: return scatter_cotangents(n, operand(0), operand(1), operand(2), value{&g, id}, ct);
    case op::update_slice: return update_slice_cotangents(n, type(1), ct);
    default: return {};
  }
}

}  // namespace tessera::transform
