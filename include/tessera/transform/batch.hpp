// SPDX-License-Identifier: Apache-2.0
// One function on many examples at once: graph in, the same graph with a leading dimension on all that depends on what
// is mapped.
#pragma once

#include <tessera/graph/along_axis.hpp>
#include <tessera/graph/control.hpp>
#include <tessera/graph/gather.hpp>
#include <tessera/graph/layout.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/graph/windows.hpp>

#include <span>

namespace tessera::transform {

using graph::op;
using graph::value;

/// What became of a node: a node of the other graph; if `batched`, with the examples along its first dimension.
struct batch_image {
  int id = -1;
  bool batched = false;
};

/// `list` with one added to every dimension.
constexpr sharding::dim_list shifted(sharding::dim_list list) {
  sharding::dim_list result = 0;
  for (int i = 0; i < sharding::dim_count(list); ++i)
    result = sharding::dim_append(result, sharding::dim_at(list, i) + 1);
  return result;
}

/// Dimension 0 and then those of `list`, each one further.
constexpr sharding::dim_list behind_first(sharding::dim_list list) { return shifted(list) << 4 | 1; }

/// `v` with dimension `from` moved to place `to`.
constexpr value move_dim(value v, int from, int to) {
  sharding::dim_list order = 0;
  for (int d = 0, next = 0; d < v.type().rank; ++d) {
    if (next == from) ++next;
    order = sharding::dim_append(order, d == to ? from : next++);
  }
  return graph::transpose(v, order);
}

/// The pass's state. What cannot be mapped is reported once, and nothing is written from there on.
struct batcher {
  graph::graph& into;
  const graph::graph& from;
  dim examples;
  graph::list<batch_image> images{};
  bool failed = false;

  constexpr batcher(graph::graph& target, const graph::graph& body, dim batch)
      : into(target), from(body), examples(batch), images(body.nodes.size()) {}

  constexpr batch_image& image(int id) { return images[static_cast<std::size_t>(id)]; }
  constexpr batch_image operand(const graph::node& n, int k) { return image(n.operands[k]); }

  constexpr void fail(const graph::trace_fault& fault) {
    if (!failed) into.outermost().report(fault);
    failed = true;
  }
  constexpr void refuse(const graph::node& n) { fail({message::vmap_operation, -1, n.type, {}, n.code}); }

  /// The type of all examples side by side.
  constexpr aval many(const aval& one) {
    const axis_set axes = set_of(examples.axes);
    if (one.rank == max_rank) fail({message::shape_rank, -1, one});
    else if ((axes & (one.cut() | one.unreduced | one.reduced | one.varying)) != 0) fail({message::vmap_axis, -1, one});
    if (failed) return one;
    aval all = graph::stacked(one, examples.extent);
    all.dims[0].axes = examples.axes;
    return all;
  }

  constexpr value plain(batch_image i) { return {&into, i.id}; }

  /// The value of all examples; one that does not depend on them is repeated.
  constexpr value all(batch_image i) {
    const value v = plain(i);
    if (i.batched) return v;
    const aval type = many(v.type());
    if (failed) return v;
    if (into.at(v.id).code == op::empty) return graph::empty(&into, type);
    return graph::broadcast(v, type, graph::dims_in_order(v.type().rank, 1));
  }

  /// An operand of an elementwise operation whose result has rank `rank` without the examples: dimensions of extent 1
  /// stand between the examples and its own.
  constexpr value aligned(batch_image i, int rank) {
    const value v = plain(i);
    aval type = v.type();
    if (!i.batched) return type.rank == 0 ? v : graph::pad_rank(v, rank + 1);
    const int own = type.rank - 1;
    if (own == rank) return v;
    aval wide = type;
    wide.rank = rank + 1;
    for (int d = 1; d <= rank; ++d) wide.dims[d] = d <= rank - own ? dim{1, 0} : type.dims[d - (rank - own)];
    return graph::reshape(v, wide);
  }

  /// Node `n` on these operands, for all examples.
  constexpr value emit(graph::node n, std::initializer_list<value> operands) {
    n.type = many(n.type);
    int i = 0;
    for (value v : operands) n.operands[i++] = v.id;
    return {&into, into.add(n)};
  }

  constexpr value elementwise(const graph::node& n) {
    graph::node wide = n;
    wide.type = many(n.type);
    for (int k = 0; k < n.operand_count(); ++k) wide.operands[k] = aligned(operand(n, k), n.type.rank).id;
    return {&into, into.add(wide)};
  }

  /// A node of one array that names a dimension, or a set of them.
  constexpr value of_dimension(graph::node n) {
    ++n.attribute[0];
    return emit(n, {all(operand(n, 0))});
  }

  constexpr value dot(const graph::node& n) {
    sharding::dot_dims dims = graph::dot_dims_of(n);
    const batch_image lhs = operand(n, 0), rhs = operand(n, 1);
    const int batches = sharding::dim_count(dims.lhs_batch);
    const int lhs_free = from.type(n.operands[0]).rank - batches - sharding::dim_count(dims.lhs_contracting);
    if (lhs.batched) dims.lhs_contracting = shifted(dims.lhs_contracting), dims.lhs_batch = shifted(dims.lhs_batch);
    if (rhs.batched) dims.rhs_contracting = shifted(dims.rhs_contracting), dims.rhs_batch = shifted(dims.rhs_batch);
    const aval type = many(n.type);
    if (failed) return {};
    if (lhs.batched && rhs.batched) {
      dims.lhs_batch = dims.lhs_batch << 4 | 1;
      dims.rhs_batch = dims.rhs_batch << 4 | 1;
      return graph::dot(plain(lhs), plain(rhs), dims, type);
    }
    const int place = lhs.batched ? batches : batches + lhs_free;
    aval natural = type;
    for (int d = 0; d < place; ++d) natural.dims[d] = type.dims[d + 1];
    natural.dims[place] = type.dims[0];
    return move_dim(graph::dot(plain(lhs), plain(rhs), dims, natural), place, 0);
  }

  constexpr sharding::slices with_all(const sharding::slices& taken, int rank) {
    sharding::slices wide;
    wide.of[0] = {0, examples.extent, 1};
    for (int d = 0; d < rank; ++d) wide.of[d + 1] = taken.of[d];
    return wide;
  }

  constexpr value update_slice(const graph::node& n) {
    const value base = all(operand(n, 0)), piece = all(operand(n, 1));
    if (failed) return {};
    return graph::update_slice(base, piece, with_all(graph::slices_of(n, from.type(n.operands[1])), n.type.rank));
  }

  constexpr value windows(const graph::node& n) {
    const bool opens = n.code == op::windows;
    graph::windowing how = graph::windowing_of(n, opens ? n.type : from.type(n.operands[0]));
    for (int i = 0; i < how.count; ++i) ++how.of[i].dim;
    const aval type = many(n.type);
    if (failed) return {};
    const value v = plain(operand(n, 0));
    return opens ? graph::windows(v, how) : graph::overlap_add(v, type, how);
  }

  /// The places of `extent` elements from each example's own start on, which is moved to where they fit into `whole`.
  constexpr value places_from(value starts, std::int64_t extent, std::int64_t whole) {
    const auto number = [&](std::int64_t n) { return graph::number_like(starts, static_cast<double>(n)); };
    if (starts.type().type == dtype::i32) {
      starts = graph::select(graph::binary(op::lt, starts, number(0)), starts + number(whole), starts);
      starts = graph::binary(op::max, starts, number(0));
    }
    starts = graph::convert(graph::binary(op::min, starts, number(whole - extent)), dtype::i32);
    aval column = starts.type();
    column.dims[column.rank++] = {1, 0};
    aval line = scalar_aval(dtype::i32);
    line.dims[line.rank++] = {1, 0};
    line.dims[line.rank++] = {extent, 0};
    return graph::reshape(starts, column) + graph::position(&into, line, 1, dtype::i32);
  }

  /// Elements that indices of each example's own choose: dimension `d` of one example.
  static constexpr sharding::indexing along(int d, sharding::scatter_kind kind = sharding::scatter_kind::set) {
    return {d + 1, 1, false, sharding::index_mode::clip, kind};
  }

  constexpr value dynamic_slice(const graph::node& n) {
    const batch_image start = operand(n, 1);
    const auto d = static_cast<int>(n.attribute[0]);
    const value v = all(operand(n, 0));
    const aval type = many(n.type);
    if (failed) return {};
    if (!start.batched) return graph::dynamic_slice(v, plain(start), d + 1, n.type.dims[d].extent);
    return graph::gather(v, places_from(plain(start), n.type.dims[d].extent, v.type().dims[d + 1].extent), along(d),
                         type);
  }

  constexpr value dynamic_update(const graph::node& n) {
    const batch_image start = operand(n, 2);
    const auto d = static_cast<int>(n.attribute[0]);
    const value base = all(operand(n, 0)), piece = all(operand(n, 1));
    if (failed) return {};
    if (!start.batched) return graph::dynamic_update_slice(base, piece, plain(start), d + 1);
    const value places = places_from(plain(start), piece.type().dims[d + 1].extent, base.type().dims[d + 1].extent);
    return graph::scatter(base, places, piece, along(d));
  }

  /// With indices of each example's own, its array goes along with them; one that all share is read by all indices.
  constexpr value gather(const graph::node& n) {
    sharding::indexing how = graph::indexing_of(n);
    const batch_image array = operand(n, 0), indices = operand(n, 1);
    const bool separate = how.batch == 0 && !how.pointwise;
    const aval type = many(n.type);
    if (failed) return {};
    if (separate && !indices.batched) {
      ++how.axis;
      return graph::gather(plain(array), plain(indices), how, type);
    }
    if (separate && !array.batched) {
      aval natural = type;
      for (int d = 0; d < how.axis; ++d) natural.dims[d] = type.dims[d + 1];
      natural.dims[how.axis] = type.dims[0];
      return move_dim(graph::gather(plain(array), plain(indices), how, natural), how.axis, 0);
    }
    ++how.axis;
    if (!how.pointwise) ++how.batch;
    const value all_arrays = all(array), all_indices = all(indices);
    return failed ? value{} : graph::gather(all_arrays, all_indices, how, type);
  }

  constexpr value scatter(const graph::node& n) {
    sharding::indexing how = graph::indexing_of(n);
    const batch_image indices = operand(n, 1);
    const value base = all(operand(n, 0)), updates = all(operand(n, 2));
    if (failed) return {};
    ++how.axis;
    if (!indices.batched && how.batch == 0 && !how.pointwise) return graph::scatter(base, plain(indices), updates, how);
    if (!how.pointwise) ++how.batch;
    const value all_indices = all(indices);
    return failed ? value{} : graph::scatter(base, all_indices, updates, how);
  }

  /// Collectives name other axes than those that cut the examples, and dimensions one further.
  constexpr value manual(graph::node n) {
    const auto axes = static_cast<axis_list>(n.attribute[0]);
    if (n.code == op::constrain || (set_of(axes) & set_of(examples.axes)) != 0) return refuse(n), value{};
    const bool has_dimension = n.code == op::gather_blocks || n.code == op::scatter_blocks || n.code == op::take_block;
    if (has_dimension || n.code == op::exchange_blocks) ++n.attribute[1];
    if (n.code == op::exchange_blocks) ++n.attribute[2];
    return emit(n, {plain(operand(n, 0))});
  }

  /// Node `n`, of whose operands some are batched.
  constexpr value map_node(const graph::node& n) {
    switch (about(n.code).kind) {
      case graph::op_kind::elementwise: return elementwise(n);
      case graph::op_kind::contraction: return dot(n);
      case graph::op_kind::check:
      case graph::op_kind::transfer: return emit(n, {plain(operand(n, 0))});
      case graph::op_kind::manual: return manual(n);
      case graph::op_kind::reduction: {
        graph::node wide = n;
        wide.attribute[0] <<= 1;
        return emit(wide, {plain(operand(n, 0))});
      }
      default: break;
    }
    switch (n.code) {
      case op::reshape: return emit(n, {plain(operand(n, 0))});
      case op::reshard: return emit(n, {plain(operand(n, 0))});
      case op::transpose:
      case op::broadcast: {
        graph::node wide = n;
        wide.attribute[0] = behind_first(n.attribute[0]);
        return emit(wide, {plain(operand(n, 0))});
      }
      case op::slice: return graph::slice(plain(operand(n, 0)), with_all(graph::slices_of(n, n.type), n.type.rank));
      case op::update_slice: return update_slice(n);
      case op::windows:
      case op::overlap_add: return windows(n);
      case op::dynamic_slice: return dynamic_slice(n);
      case op::dynamic_update: return dynamic_update(n);
      case op::gather: return gather(n);
      case op::scatter: return scatter(n);
      case op::cumulative:
      case op::argsort: return of_dimension(n);
      case op::recurrence: {
        graph::node wide = n;
        ++wide.attribute[0];
        return emit(wide, {all(operand(n, 0)), all(operand(n, 1))});
      }
      case op::softmax:
      case op::log_softmax: return emit(n, {plain(operand(n, 0))});
      case op::softmax_grad:
      case op::log_softmax_grad: return emit(n, {all(operand(n, 0)), all(operand(n, 1))});
      default: return refuse(n), value{};
    }
  }

  constexpr void visit_control(int id);

  /// Writes what the nodes of the body are for all examples; images of its parameters are set before.
  constexpr void run() {
    for (int i = 0; i < from.size() && !failed; ++i) {
      graph::node n = from.at(i);
      if (n.code == op::parameter || n.code == op::result || is(n.code, graph::op_kind::list)) continue;
      if (n.code == op::control) {
        visit_control(i);
        continue;
      }
      bool any = false;
      for (int k = 0; k < n.operand_count(); ++k) any = any || operand(n, k).batched;
      if (any) {
        image(i) = {map_node(n).id, true};
      } else {
        for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = operand(n, k).id;
        image(i) = {into.add(n), false};
      }
    }
  }
};

}  // namespace tessera::transform

#include <tessera/transform/batch_control.hpp>
