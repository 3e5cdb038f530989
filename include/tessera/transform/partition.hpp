// SPDX-License-Identifier: Apache-2.0
// From one program over global arrays to the program of one device: local blocks, and collectives where blocks must
// meet. In the result a type's extents are those of a block and `varying` says over which axes blocks differ.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/gather.hpp>
#include <tessera/graph/graph.hpp>
#include <tessera/graph/permutation.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/transform/deferred_sums.hpp>
#include <tessera/transform/forms.hpp>
#include <tessera/transform/simplify.hpp>

namespace tessera::transform {

/// The pass's state: the program so far and, for each global node, the forms it exists in.
struct partitioner : form_moves {
  const graph::graph& global;
  graph::list<form> forms{};
  graph::list<int> first_form{};
  graph::list<graph::list<axis_set>> deferred{};  ///< by control node: axes over which its carries are left pending

  constexpr explicit partitioner(const graph::graph& g) : global(g) {
    result.mesh = g.mesh;
    first_form.resize(g.nodes.size(), -1);
    forms.reserve(g.nodes.size() + g.nodes.size() / 4);
    result.nodes.reserve(g.nodes.size() + g.nodes.size() / 4);
  }

  constexpr form remember(int id, form f) {
    f.next = first_form[static_cast<std::size_t>(id)];
    first_form[static_cast<std::size_t>(id)] = static_cast<int>(forms.size());
    forms.push_back(f);
    return f;
  }

  /// The local node that holds global node `id` cut as `wanted`; what is missing is computed from a form that exists.
  constexpr int request(int id, const aval& wanted) {
    form from{};
    int best = -1;
    for (int f = first_form[static_cast<std::size_t>(id)]; f >= 0; f = forms[static_cast<std::size_t>(f)].next) {
      const form& candidate = forms[static_cast<std::size_t>(f)];
      if (candidate.type.same_spec(wanted)) return candidate.local;
      const int fit = candidate.type.unreduced == wanted.unreduced ? 2 : candidate.type.unreduced == 0 ? 1 : 0;
      if (fit > best) best = fit, from = candidate;
    }
    return move(from, wanted, [&](const form& to) { remember(id, to); }).local;
  }

  constexpr int request(int id) { return request(id, global.type(id)); }

  /// Operand dimension `d` of an elementwise node is cut as the result's, unless it is repeated; the operand is
  /// unreduced where both are.
  constexpr aval as_result(aval operand, const aval& of) const {
    operand = still_pending(operand, static_cast<axis_set>(operand.unreduced & of.unreduced));
    for (int d = 0; d < operand.rank; ++d)
      operand.dims[d].axes = operand.dims[d].extent == of.dims[d].extent ? of.dims[d].axes : 0;
    return operand;
  }

  /// The type of a block that differs over all axes its type says.
  constexpr aval delivered_block(const aval& type) const {
    aval local = block(type);
    local.varying = static_cast<axis_set>(local.varying | type.varying);
    return local;
  }

  /// The local node that holds node `id` with a block for each device that has one by its type, even where they are
  /// equal: what results, arguments of loops and their parameters are.
  constexpr int delivered(int id) {
    const int local = request(id);
    const aval wanted = delivered_block(global.type(id));
    if (result.type(local).varying == wanted.varying) return local;
    return emit(op::broadcast, wanted, {local}, {graph::dims_in_order(wanted.rank)});
  }

  /// The node itself on blocks, with operands in the given local forms.
  constexpr form copy_node(const graph::node& n, std::initializer_list<int> operands, aval type) {
    type.varying = n.type.varying;
    graph::node local = n;
    int i = 0;
    local.type = n.operand_count() == 0 || is(n.code, graph::op_kind::result) ? delivered_block(type) : block(type);
    for (int operand : operands) {
      if (i == n.operand_count()) break;
      local.operands[i++] = operand;
      local.type.varying = static_cast<axis_set>(local.type.varying | (result.type(operand).varying & type.varying));
    }
    return {type, result.add(local)};
  }

  constexpr form elementwise(const graph::node& n) {
    int operands[3] = {-1, -1, -1};
    for (int k = 0; k < n.operand_count(); ++k)
      operands[k] = request(n.operands[k], as_result(global.type(n.operands[k]), n.type));
    return copy_node(n, {operands[0], operands[1], operands[2]}, n.type);
  }

  /// A zero is a pending sum as it is.
  constexpr form broadcast(const graph::node& n) {
    const graph::node& source = global.at(n.operands[0]);
    const bool zero = source.code == op::constant && source.value == 0;
    aval operand = zero ? source.type : with_marks(source.type, n.type);
    for (int d = 0; d < operand.rank; ++d) {
      const dim& target = n.type.dims[sharding::dim_at(n.attribute[0], d)];
      operand.dims[d].axes = operand.dims[d].extent == target.extent ? target.axes : 0;
    }
    return copy_node(n, {request(n.operands[0], operand)}, n.type);
  }

  /// A check keeps the cuts of the first six dimensions, to say where a bad element stands in the whole array.
  constexpr form check(const graph::node& n) {
    graph::node noted = n;
    for (int d = 0; d < n.type.rank && d < 6; ++d)
      noted.attribute[1 + d / 2] |= static_cast<std::uint64_t>(n.type.dims[d].axes) << (32 * (d % 2));
    return copy_node(noted, {request(n.operands[0])}, n.type);
  }

  /// A device counts the whole dimension and takes its part of it.
  constexpr form positions(const graph::node& n) {
    aval whole = n.type;
    whole.dims[n.attribute[0]].axes = 0;
    return slice_towards(copy_node(n, {}, whole), n.type);
  }

  /// Local reduction; the axes that cut a reduced dimension are pending afterwards, beside those that were.
  constexpr form reduction(const graph::node& n) {
    const aval operand = global.type(n.operands[0]);
    aval type = still_pending(n.type, operand.unreduced);
    int place = 0;
    for (int d = 0; d < operand.rank; ++d) {
      const bool reduced = n.attribute[0] & (1U << d);
      if (reduced) type.unreduced = static_cast<axis_set>(type.unreduced | set_of(operand.dims[d].axes));
      if (reduced && n.type.rank == operand.rank) type.dims[place++].axes = 0;
      if (!reduced) type.dims[place++].axes = operand.dims[d].axes;
    }
    type.pending = type.unreduced != 0 ? combine_of(n.code) : combine::sum;
    return copy_node(n, {request(n.operands[0])}, type);
  }

  /// How a contraction is cut: the operands as they are multiplied on a device.
  struct dot_cut {
    aval lhs{};
    aval rhs{};
    axis_set pending = 0;
  };

  /// Cuts both operands alike along contracting and batch dimensions; where only one is cut, the other is sliced if its
  /// axes are free, else the cut one is gathered.
  constexpr void match(dim& l, dim& r, const aval& lhs, const aval& rhs) const {
    if (l.axes == r.axes) return;
    if (l.axes == 0 && (set_of(r.axes) & lhs.cut()) == 0) l.axes = r.axes;
    else if (r.axes == 0 && (set_of(l.axes) & rhs.cut()) == 0) r.axes = l.axes;
    else if ((set_of(l.axes) & rhs.cut() & ~set_of(r.axes)) == 0) r.axes = l.axes;
    else l.axes = r.axes = 0;
  }

  /// Free dimensions: where the result is wanted cut and the operand is whole along free axes, multiply only the slice;
  /// where both operands use an axis, the one whose result dimension is not wanted so is gathered.
  constexpr void settle_free(aval& side, sharding::dim_list free, int first, const aval& wanted, const aval& other,
                             axis_set contracted) const {
    for (int i = 0; i < sharding::dim_count(free); ++i) {
      dim& d = side.dims[sharding::dim_at(free, i)];
      const axis_list want = wanted.dims[first + i].axes;
      if (d.axes == 0 && want != 0 && (set_of(want) & (side.cut() | other.cut() | contracted)) == 0) d.axes = want;
      if (d.axes != want && (set_of(d.axes) & (other.cut() | contracted)) != 0) d.axes = 0;
    }
  }

  constexpr dot_cut cut_dot(const graph::node& n) const {
    const sharding::dot_dims dims = graph::dot_dims_of(n);
    dot_cut cut{without_marks(global.type(n.operands[0])), without_marks(global.type(n.operands[1])), 0};
    for (int i = 0; i < sharding::dim_count(dims.lhs_batch); ++i)
      match(cut.lhs.dims[sharding::dim_at(dims.lhs_batch, i)], cut.rhs.dims[sharding::dim_at(dims.rhs_batch, i)],
            cut.lhs, cut.rhs);
    for (int i = 0; i < sharding::dim_count(dims.lhs_contracting); ++i) {
      dim& l = cut.lhs.dims[sharding::dim_at(dims.lhs_contracting, i)];
      match(l, cut.rhs.dims[sharding::dim_at(dims.rhs_contracting, i)], cut.lhs, cut.rhs);
      cut.pending = static_cast<axis_set>(cut.pending | set_of(l.axes));
    }
    const sharding::dim_list lhs_free = sharding::free_dims(cut.lhs.rank, dims.lhs_contracting, dims.lhs_batch);
    const sharding::dim_list rhs_free = sharding::free_dims(cut.rhs.rank, dims.rhs_contracting, dims.rhs_batch);
    const int batches = sharding::dim_count(dims.lhs_batch);
    settle_free(cut.lhs, lhs_free, batches, n.type, without(cut.rhs, dims.rhs_contracting, dims.rhs_batch),
                cut.pending);
    settle_free(cut.rhs, rhs_free, batches + sharding::dim_count(lhs_free), n.type,
                without(cut.lhs, dims.lhs_contracting, dims.lhs_batch), cut.pending);
    return cut;
  }

  /// `a` with only its free dimensions cut.
  constexpr aval without(aval a, sharding::dim_list contracting, sharding::dim_list batch) const {
    for (int d = 0; d < a.rank; ++d)
      if (sharding::dim_in(contracting, d) || sharding::dim_in(batch, d)) a.dims[d].axes = 0;
    return a;
  }

  constexpr form contraction(const graph::node& n) {
    const dot_cut cut = cut_dot(n);
    aval type = sharding::dot_result(cut.lhs, cut.rhs, graph::dot_dims_of(n));
    type.type = n.type.type;
    type.unreduced = cut.pending;
    const int lhs = request(n.operands[0], cut.lhs);
    return copy_node(n, {lhs, request(n.operands[1], cut.rhs)}, type);
  }

  /// A control node with partitioned bodies. Arguments and results are cut as their types say, so that every trip finds
  /// what the one before left; but sums over devices that a scan collects are added up once, behind it.
  constexpr form control(int id) {
    graph::node n = global.at(id);
    graph::control c = graph::control_of(n);
    graph::list<graph::graph> bodies;
    for (int b = 0; b < c.bodies(); ++b) bodies.push_back(global.bodies[static_cast<std::size_t>(c.body + b)]);
    const graph::list<int> given = graph::arguments_of(global, id);
    graph::list<axis_set> pending(given.size(), 0);
    if (c.kind == graph::control_kind::scan) defer_sums(c, given, bodies[0], pending);
    graph::list<int> arguments;
    for (std::size_t i = 0; i < given.size(); ++i)
      arguments.push_back(pending[i] != 0 ? zeros_pending(global.type(given[i]), pending[i]) : delivered(given[i]));
    c.body = static_cast<int>(result.bodies.size());
    for (const graph::graph& body : bodies) result.bodies.push_back(partition_body(body));
    const int made = graph::add_control(result, c, arguments);
    deferred.resize(global.nodes.size());
    deferred[static_cast<std::size_t>(id)] = pending;
    return {n.type, made};
  }
  static constexpr graph::graph partition_body(const graph::graph& body);

  /// The axes over which each node of a body is a sum over devices before it is reduced.
  static constexpr graph::list<axis_set> pending_forms(const graph::graph& body);

  /// Leaves sums that a scan collects, starting from zero, pending in its body; `pending` gets their axes by argument.
  constexpr void defer_sums(const graph::control& c, const graph::list<int>& given, graph::graph& body,
                            graph::list<axis_set>& pending) const {
    graph::list<axis_set> forms_in_body;
    for (int j = 0; j < c.carries; ++j) {
      if (summand(body, j) < 0 || !is_zeros(given[static_cast<std::size_t>(j)])) continue;
      if (forms_in_body.empty()) forms_in_body = pending_forms(body);
      pending[static_cast<std::size_t>(j)] = leave_pending(body, j, forms_in_body);
    }
  }

  /// Zeros that are a sum over devices.
  constexpr int zeros_pending(aval type, axis_set axes) {
    type.unreduced = axes;
    aval local = block(type);
    local.varying = static_cast<axis_set>(delivered_block(type).varying | axes);
    return emit(op::broadcast, local, {graph::full(&result, scalar_aval(type.type), 0).id}, {0});
  }

  /// The result of a control node, with what is still pending of it.
  constexpr form control_result(const graph::node& n) {
    const auto at = static_cast<std::size_t>(n.operands[0]);
    aval type = n.type;
    if (at < deferred.size() && n.attribute[0] < deferred[at].size()) {
      type.unreduced = static_cast<axis_set>(type.unreduced | deferred[at][n.attribute[0]]);
      if (type.unreduced != 0 && n.type.unreduced == 0) type.pending = combine::sum;
    }
    graph::node typed = n;
    typed.type = type;
    return copy_node(typed, {forms[static_cast<std::size_t>(first_form[at])].local}, type);
  }

  /// Chosen dimensions are cut as the indices, the others as the array. A device reads what it has of a cut indexed
  /// dimension, zeros for the rest: the sum over the devices is pending. Axes cannot do both; then the array is
  /// gathered.
  constexpr form gather(const graph::node& n) {
    const sharding::indexing how = graph::indexing_of(n);
    aval array = global.type(n.operands[0]);
    aval indices = global.type(n.operands[1]);
    const sharding::gather_dims dims(how, array.rank, indices.rank);
    axis_set by_indices = 0;
    for (int d = 0; d < dims.rank; ++d)
      if (dims.of_indices[d] >= 0) by_indices = static_cast<axis_set>(by_indices | set_of(n.type.dims[d].axes));
    axis_list parts = array.dims[how.axis].axes;
    if ((set_of(parts) & by_indices) != 0 || n.type.type == dtype::bool_) parts = 0;
    aval type = n.type;
    for (int d = 0; d < dims.rank; ++d) {
      if ((set_of(type.dims[d].axes) & set_of(parts)) != 0) type.dims[d].axes = 0;
      if (dims.of_array[d] >= 0) array.dims[dims.of_array[d]].axes = type.dims[d].axes;
      if (dims.of_indices[d] >= 0) indices.dims[dims.of_indices[d]].axes = type.dims[d].axes;
    }
    array.dims[how.axis].axes = parts;
    type.unreduced = static_cast<axis_set>(type.unreduced | set_of(parts));
    graph::node local = n;
    local.attribute[1] = parts;
    const int from = request(n.operands[0], array);
    return copy_node(local, {from, request(n.operands[1], indices)}, type);
  }

  /// Every device writes what falls into its block. Where the updates are cut along chosen dimensions and are added to
  /// zeros, the devices' sums are added up afterwards; otherwise each needs all updates.
  constexpr form scatter(const graph::node& n) {
    const sharding::indexing how = graph::indexing_of(n);
    aval type = n.type;
    aval indices = global.type(n.operands[1]);
    aval updates = global.type(n.operands[2]);
    const sharding::gather_dims dims(how, type.rank, indices.rank);
    axis_set by_updates = 0;
    for (int d = 0; d < dims.rank; ++d)
      if (dims.chosen(d)) by_updates = static_cast<axis_set>(by_updates | set_of(updates.dims[d].axes));
    const bool partial =
        how.kind == sharding::scatter_kind::add && (by_updates & type.cut()) == 0 && is_zeros(n.operands[0]);
    for (int d = 0; d < dims.rank; ++d) {
      if (!dims.chosen(d)) updates.dims[d].axes = type.dims[dims.of_array[d]].axes;
      else if (!partial) updates.dims[d].axes = 0;
      if (dims.of_indices[d] >= 0) indices.dims[dims.of_indices[d]].axes = updates.dims[d].axes;
    }
    if (partial) type.unreduced = static_cast<axis_set>(type.unreduced | by_updates);
    graph::node local = n;
    local.attribute[1] = type.dims[how.axis].axes;
    const int base = request(n.operands[0]);
    const int at = request(n.operands[1], indices);
    return copy_node(local, {base, at, request(n.operands[2], updates)}, type);
  }

  constexpr bool is_zeros(int id) const {
    while (global.at(id).code == op::broadcast || global.at(id).code == op::reshard) id = global.at(id).operands[0];
    return global.at(id).code == op::constant && global.at(id).value == 0;
  }

  /// The node on blocks of its operands cut as they are typed.
  constexpr form as_typed(const graph::node& n) {
    int operands[3] = {-1, -1, -1};
    for (int k = 0; k < n.operand_count(); ++k) operands[k] = request(n.operands[k]);
    return copy_node(n, {operands[0], operands[1], operands[2]}, n.type);
  }

  /// The node of a shard_map: its boundary and its casts move nothing, since a body's value is the block it stands for;
  /// its collectives are those of the program. A cast value's block may be one for all devices, until someone writes
  /// it.
  constexpr form manual(const graph::node& n) {
    if (n.code == op::axis_index) return {n.type, place_along(static_cast<axis_list>(n.attribute[0]))};
    const int from = request(n.operands[0]);
    const auto axes = static_cast<axis_list>(n.attribute[0]);
    const graph::permutation sends{{n.attribute[2], n.attribute[3]}};
    if (axes == 0 && n.code == op::permute_blocks && sends.source(0, 1) < 0)
      return {n.type, graph::full(&result, block(n.type), 0).id};
    if (n.code == op::to_local || n.code == op::to_global || n.code == op::pcast || axes == 0) return {n.type, from};
    aval type = block(n.type, from);
    const auto add = [&](op code, axis_set varies, std::initializer_list<std::uint64_t> attributes) {
      type.varying = static_cast<axis_set>(type.varying | varies);
      return form{n.type, emit(code, type, {from}, attributes)};
    };
    switch (n.code) {
      case op::psum:
        type.varying = static_cast<axis_set>(type.varying & ~set_of(axes));
        return add(op::all_reduce, 0, {set_of(axes), n.attribute[1]});
      case op::gather_blocks:
        type.varying = static_cast<axis_set>(type.varying & ~set_of(axes));
        return add(op::all_gather, 0, {axes, n.attribute[1]});
      case op::scatter_blocks:
        return add(op::reduce_scatter, set_of(axes), {axes, n.attribute[1], static_cast<std::uint64_t>(combine::sum)});
      case op::exchange_blocks: return add(op::all_to_all, set_of(axes), {axes, n.attribute[1], n.attribute[2]});
      case op::permute_blocks: return add(op::permute, set_of(axes), {axes, 0, n.attribute[2], n.attribute[3]});
      default: return add(op::local_slice, set_of(axes), {axes, n.attribute[1]});
    }
  }

  constexpr void partition_node(int id) {
    const graph::node n = global.at(id);
    switch (about(n.code).kind) {
      case graph::op_kind::list: remember(id, {n.type}); return;
      case graph::op_kind::control: remember(id, control(id)); return;
      case graph::op_kind::result: remember(id, control_result(n)); return;
      case graph::op_kind::source:
        if (n.code == op::parameter) result.parameters.push_back(result.size());
        remember(id, n.code == op::iota ? positions(n) : copy_node(n, {}, n.type));
        return;
      case graph::op_kind::custom: remember(id, as_typed(n)); return;
      case graph::op_kind::elementwise: remember(id, elementwise(n)); return;
      case graph::op_kind::reduction: remember(id, reduction(n)); return;
      case graph::op_kind::contraction: remember(id, contraction(n)); return;
      case graph::op_kind::manual: remember(id, manual(n)); return;
      case graph::op_kind::rows: remember(id, elementwise(n)); return;
      case graph::op_kind::transfer: remember(id, copy_node(n, {delivered(n.operands[0])}, n.type)); return;
      default: break;
    }
    switch (n.code) {
      case op::broadcast: remember(id, broadcast(n)); return;
      case op::gather: remember(id, gather(n)); return;
      case op::scatter: remember(id, scatter(n)); return;
      case op::check_range: remember(id, check(n)); return;
      case op::reshard: remember(id, {n.type, request(n.operands[0], n.type)}); return;
      default: remember(id, as_typed(n)); return;
    }
  }
};

/// Nodes that someone else than a reshard uses need the form their type says, whatever resharding comes first.
constexpr graph::list<char> needed_as_typed(const graph::graph& g) {
  graph::list<char> needed(g.nodes.size(), 0);
  for (int i = 0; i < g.size(); ++i)
    if (g.at(i).code != op::reshard)
      graph::for_each_read(g, i, [&](int operand) { needed[static_cast<std::size_t>(operand)] = 1; });
  return needed;
}

/// The same graph without the axes along which there is one device: they cut nothing and need no collective. A reduced
/// array is one that every device has.
constexpr graph::graph drop_single_axes(graph::graph g) {
  const auto kept = [&](axis_list axes) {
    axis_list several = 0;
    for (int i = 0; i < axis_count(axes); ++i)
      if (const int axis = axis_at(axes, i); g.mesh.size(axis) > 1) several = axis_append(several, axis);
    return several;
  };
  axis_set single = 0;
  for (int i = 0; i < g.mesh.rank; ++i)
    if (g.mesh.size(i) == 1) single = static_cast<axis_set>(single | bit_of(i));
  for (graph::node& n : g.nodes) {
    for (int d = 0; d < n.type.rank; ++d) n.type.dims[d].axes = kept(n.type.dims[d].axes);
    n.type.reduced = 0;
    n.type = form_moves::still_pending(n.type, static_cast<axis_set>(n.type.unreduced & ~single));
    n.type.varying = static_cast<axis_set>(n.type.varying & ~single);
    if (is(n.code, graph::op_kind::manual)) n.attribute[0] = kept(static_cast<axis_list>(n.attribute[0]));
  }
  for (graph::graph& body : g.bodies) body = drop_single_axes(body);
  return g;
}

/// Partitions all nodes of a graph.
constexpr void partition_nodes(partitioner& pass) {
  const graph::graph& g = pass.global;
  const graph::list<char> as_typed = needed_as_typed(g);
  for (int i = 0; i < g.size(); ++i) {
    pass.partition_node(i);
    const form made = pass.forms[static_cast<std::size_t>(pass.first_form[static_cast<std::size_t>(i)])];
    if (as_typed[static_cast<std::size_t>(i)] && made.type.unreduced != g.type(i).unreduced) pass.request(i);
  }
}

/// The program of one device. Collectives appear only where a form is asked for that does not exist yet, so a value is
/// moved at most once into each form.
constexpr graph::graph partition(const graph::graph& whole) {
  const graph::graph g = drop_single_axes(whole);
  partitioner pass(g);
  partition_nodes(pass);
  for (const graph::output& out : g.outputs) pass.result.outputs.push_back({pass.delivered(out.node), out.alias});
  return simplify(pass.result);
}

constexpr graph::graph partitioner::partition_body(const graph::graph& body) { return partition(body); }

constexpr graph::list<axis_set> partitioner::pending_forms(const graph::graph& body) {
  partitioner pass(body);
  partition_nodes(pass);
  graph::list<axis_set> pending(body.nodes.size(), 0);
  for (std::size_t i = 0; i < pending.size(); ++i)
    for (int f = pass.first_form[i]; f >= 0; f = pass.forms[static_cast<std::size_t>(f)].next) {
      const aval& type = pass.forms[static_cast<std::size_t>(f)].type;
      if (type.pending == combine::sum && body.type(static_cast<int>(i)).unreduced == 0)
        pending[i] = static_cast<axis_set>(pending[i] | type.unreduced);
    }
  return pending;
}

}  // namespace tessera::transform
