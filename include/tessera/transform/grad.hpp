// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation: graph in, the same graph with the nodes of the gradients behind it.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/manual.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/transform/grad_axis.hpp>
#include <tessera/transform/grad_dot.hpp>
#include <tessera/transform/grad_elementwise.hpp>
#include <tessera/transform/grad_layout.hpp>
#include <tessera/transform/partial_evaluation.hpp>

#include <span>
#include <stdexcept>

namespace tessera::transform {

/// `v`, of the type of a reduction's result or of its gradient, repeated along the reduced dimensions of an operand
/// whose cuts, or whose gradient's type, are those of `like`.
constexpr value spread(value v, const aval& like, sharding::dim_set dims) {
  aval target = like;
  target.type = v.type().type;
  sharding::dim_list places = 0;
  const bool kept = v.type().rank == like.rank;
  for (int i = 0; i < like.rank; ++i)
    if (kept || !(dims & (1U << i))) places = sharding::dim_append(places, i);
  aval natural = with_marks(v.type(), like);
  for (int i = 0; i < natural.rank; ++i) {
    const int d = sharding::dim_at(places, i);
    if (!(dims & (1U << d))) natural.dims[i].axes = like.dims[d].axes;
    else natural.dims[i].axes = 0;
  }
  return graph::broadcast(graph::reshard(v, natural), target, places);
}

/// Equal shares for all elements that attain the extremum.
constexpr value extremum_reduction_cotangent(value x, value y, sharding::dim_set dims, value ct) {
  const value attained = graph::convert(graph::binary(op::eq, x, spread(y, x.type(), dims)), x.type().type);
  const spec_value spec = graph::spec_of(y.type());
  const bool kept = y.type().rank == x.type().rank;
  const value ties = graph::reduce(op::reduce_sum, attained, dims, kept, &spec);
  return spread(ct / ties, cotangent_type(x.type()), dims) * attained;
}

/// To each element the product of the others: y / x where nothing is 0; where one element is, to that one alone. Where
/// an element is exactly 0 the derivative of this one treats it as a constant.
constexpr value product_cotangent(value x, value y, sharding::dim_set dims, value ct) {
  const spec_value spec = graph::spec_of(y.type());
  const bool kept = y.type().rank == x.type().rank;
  const value one = graph::number_like(x, 1);
  const value nothing = graph::number_like(x, 0);
  const value zero = graph::binary(op::eq, x, nothing);
  const value rest = graph::select(zero, one, x);
  const value zeros = graph::reduce(op::reduce_sum, graph::convert(zero, x.type().type), dims, kept, &spec);
  const value product = spread(graph::reduce(op::reduce_prod, rest, dims, kept, &spec), x.type(), dims);
  const value others = spread(zeros, x.type(), dims) - graph::convert(zero, x.type().type);
  return spread(ct, cotangent_type(x.type()), dims) *
         graph::select(graph::binary(op::eq, others, nothing), product / rest, nothing);
}

/// ct of a broadcast summed back to `operand`.
constexpr value broadcast_cotangent(value ct, const aval& operand, sharding::dim_list places) {
  sharding::dim_set repeated = 0;
  for (int i = 0; i < ct.type().rank; ++i) {
    bool mapped = false;
    for (int j = 0; j < operand.rank; ++j)
      mapped |= sharding::dim_at(places, j) == i && operand.dims[j].extent == ct.type().dims[i].extent;
    if (!mapped) repeated |= 1U << i;
  }
  aval target = with_marks(operand, ct.type());
  target.type = ct.type().type;
  aval squeezed = with_marks(scalar_aval(target.type), target);
  for (int j = 0; j < operand.rank; ++j)
    if (!(repeated & (1U << sharding::dim_at(places, j)))) squeezed.dims[squeezed.rank++] = operand.dims[j];
  const spec_value spec = graph::spec_of(squeezed);
  return graph::reshape(graph::reduce(op::reduce_sum, ct, repeated, false, &spec), target);
}

/// The sum along the last dimension, kept as extent 1.
constexpr value row_sum(value v) { return graph::reduce(op::reduce_sum, v, 1U << (v.type().rank - 1), true); }

/// Of y (u - sum(u y)), with y a softmax and u a cotangent of it.
constexpr cotangents softmax_grad_cotangents(value y, value u, value ct) {
  const value to_u = graph::write(y.owner, op::softmax_grad, with_marks(y.type(), ct.type()), {y.id, ct.id});
  return {{ct * (u - row_sum(u * y)) - u * row_sum(ct * y), to_u}};
}

/// Of u - exp(y) sum(u), with y a log-softmax and u a cotangent of it.
constexpr cotangents log_softmax_grad_cotangents(value y, value u, value ct) {
  const value p = graph::unary(op::exp, y);
  return {{-(ct * p * row_sum(u)), ct - row_sum(ct * p)}};
}

/// Of the nodes of a shard_map. Casts and the collectives that take away or bring variation are each other's transpose,
/// so a cotangent is summed over devices exactly where its value was one for all of them.
constexpr value manual_cotangent(const graph::node& n, value x, value ct) {
  const auto axes = static_cast<axis_list>(n.attribute[0]);
  const auto d = static_cast<int>(n.attribute[1]);
  const aval wanted = cotangent_type(x.type());
  switch (n.code) {
    case op::to_auto: return graph::to_explicit(ct, wanted, axes);
    case op::to_explicit: return graph::to_auto(ct, wanted, axes);
    case op::constrain:
      return graph::write_manual(ct, op::constrain, wanted,
                                 {n.attribute[0], n.attribute[1], n.attribute[2], n.attribute[3]});
    case op::to_local: return graph::to_global(ct, wanted);
    case op::to_global: return graph::to_local(ct, wanted);
    case op::psum:
      if (n.attribute[1] != 0) x.owner->report({message::pmax_gradient, -1, {}});
      return graph::pcast(ct, wanted);
    case op::pcast: {
      const axis_set summed =
          static_cast<axis_set>((ct.type().varying | ct.type().unreduced) & ~(wanted.varying | wanted.unreduced));
      axis_list over = 0;
      for (int i = 0; i < x.mesh().rank; ++i)
        if (summed & bit_of(i)) over = axis_append(over, i);
      return graph::pcast(over == 0 ? ct : graph::psum(ct, over), wanted);
    }
    case op::gather_blocks:
      return sharding::state_along(ct.type(), axis_at(axes, 0)) == manual_state::invarying
                 ? graph::take_block(ct, axes, d)
                 : graph::scatter_blocks(ct, axes, d);
    case op::take_block: return graph::gather_blocks(ct, axes, d, manual_state::invarying);
    case op::scatter_blocks: return graph::gather_blocks(ct, axes, d, sharding::state_along(wanted, axis_at(axes, 0)));
    case op::exchange_blocks: return graph::exchange_blocks(ct, axes, static_cast<int>(n.attribute[2]), d);
    case op::permute_blocks:
      return graph::permute_blocks(ct, axes, graph::permutation{{n.attribute[2], n.attribute[3]}}.inverse());
    default: return {};
  }
}

/// Cotangents of the operands of node `id`, given that of its result.
constexpr cotangents node_cotangents(graph::graph& g, int id, value ct) {
  const graph::node n = g.at(id);
  const auto operand = [&](int i) { return value{&g, n.operands[i]}; };
  const value y{&g, id};
  switch (about(n.code).kind) {
    case graph::op_kind::elementwise:
      if (n.code == op::select) {
        const value zero = graph::number_like(ct, 0);
        return {{{}, graph::select(operand(0), ct, zero), graph::select(operand(0), zero, ct)}};
      }
      if (n.operand_count() == 2) return binary_cotangents(n.code, operand(0), operand(1), y, ct);
      return {{unary_cotangent(n.code, operand(0), y, ct)}};
    case graph::op_kind::contraction: return dot_cotangents(operand(0), operand(1), dot_dims_of(n), ct, id);
    case graph::op_kind::reduction:
      if (n.code == op::reduce_prod)
        return {{product_cotangent(operand(0), y, static_cast<sharding::dim_set>(n.attribute[0]), ct)}};
      if (n.code != op::reduce_sum)
        return {{extremum_reduction_cotangent(operand(0), y, static_cast<sharding::dim_set>(n.attribute[0]), ct)}};
      return {{spread(ct, cotangent_type(operand(0).type()), static_cast<sharding::dim_set>(n.attribute[0]))}};
    case graph::op_kind::manual:
      if (n.operand_count() == 0) return {};
      return {{manual_cotangent(n, operand(0), ct)}};
    case graph::op_kind::transfer: return {{ct}};
    case graph::op_kind::custom: note_fault(g, message::custom_op_gradient, id); return {};
    default: break;
  }
  switch (n.code) {
    case op::reshape: return {{graph::reshape(ct, with_marks(operand(0).type(), ct.type()))}};
    case op::transpose: return {{graph::transpose(ct, inverse(n.attribute[0], n.type.rank))}};
    case op::broadcast: return {{broadcast_cotangent(ct, operand(0).type(), n.attribute[0])}};
    case op::reshard: return {{graph::reshard(ct, cotangent_type(operand(0).type()))}};
    case op::cumulative: return {{cumulative_cotangent(n, operand(0), y, ct)}};
    case op::recurrence: {
      const recurrence_cotangents back(n, operand(0), y, ct);
      return {{back.to_a, back.to_b}};
    }
    case op::softmax: return {{graph::write(&g, op::softmax_grad, with_marks(n.type, ct.type()), {id, ct.id})}};
    case op::log_softmax: return {{graph::write(&g, op::log_softmax_grad, with_marks(n.type, ct.type()), {id, ct.id})}};
    case op::softmax_grad: return softmax_grad_cotangents(operand(0), operand(1), ct);
    case op::log_softmax_grad: return log_softmax_grad_cotangents(operand(0), operand(1), ct);
    default: return layout_cotangents(g, id, ct);
  }
}

/// Which nodes up to `last` depend on one of `wrt` through floating-point values.
constexpr graph::list<char> depends_on(const graph::graph& g, int last, std::span<const int> wrt) {
  graph::list<char> depends(static_cast<std::size_t>(last + 1), 0);
  for (int w : wrt)
    if (w <= last) depends[static_cast<std::size_t>(w)] = 1;
  for (int i = 0; i <= last; ++i) {
    const graph::node& n = g.at(i);
    if (!is_floating(n.type.type) || n.code == op::stop_gradient) continue;
    for (int k = 0; k < n.operand_count(); ++k)
      if (depends[static_cast<std::size_t>(n.operands[k])]) depends[static_cast<std::size_t>(i)] = 1;
  }
  return depends;
}

/// A node and the cotangent that comes in for it.
struct seed {
  int node = -1;
  int cotangent = -1;
};

/// What the gradient of a control node says of one of its arguments: a share of its cotangent or, if `total`, all of
/// it, with what there was before.
struct argument_cotangent {
  int id = -1;
  bool total = false;
};

/// A control node in a reverse pass: cotangents of its results (by number, -1 for none) and those that its arguments
/// have by now, and which arguments matter.
struct control_cotangents_in {
  graph::list<int> of_results{};
  graph::list<int> so_far{};
  graph::list<char> wanted{};
};

/// Cotangents of the arguments of control node `id`; see grad_control.hpp.
constexpr graph::list<argument_cotangent> control_cotangents(graph::graph& g, int id, const control_cotangents_in& in,
                                                             policies around);

/// The reverse pass over the nodes up to `last`: the cotangent of each, or -1.
struct reverse_pass {
  graph::graph& g;
  policies around;
  graph::list<char> depends;
  graph::list<int> ct;

  constexpr reverse_pass(graph::graph& graph_in, int last, std::span<const int> wrt, policies policies_around)
      : g(graph_in),
        around(policies_around),
        depends(depends_on(graph_in, last, wrt)),
        ct(static_cast<std::size_t>(last + 1), -1) {}

  constexpr bool matters(int id) const { return depends[static_cast<std::size_t>(id)] != 0; }

  /// Adds `share` to the cotangent of node `id`, with exactly the type that a gradient of it has.
  constexpr void add(int id, value share) {
    int& sum = ct[static_cast<std::size_t>(id)];
    const value fitting = unbroadcast(share, g.type(id));
    sum = sum < 0 ? fitting.id : (value{&g, sum} + fitting).id;
  }

  constexpr void visit_control(int id) {
    control_cotangents_in in;
    for (int i = id + 1; i < static_cast<int>(ct.size()); ++i) {
      if (g.at(i).code != op::result || g.at(i).operands[0] != id || ct[static_cast<std::size_t>(i)] < 0) continue;
      const auto number = static_cast<std::size_t>(g.at(i).attribute[0]);
      if (number >= in.of_results.size()) in.of_results.resize(number + 1, -1);
      in.of_results[number] = ct[static_cast<std::size_t>(i)];
    }
    if (in.of_results.empty()) return;
    const graph::list<int> arguments = graph::arguments_of(g, id);
    for (int argument : arguments) {
      in.wanted.push_back(matters(argument) ? 1 : 0);
      in.so_far.push_back(ct[static_cast<std::size_t>(argument)]);
    }
    const graph::list<argument_cotangent> back = control_cotangents(g, id, in, around);
    // Totals first: a value may be captured and be carried or stacked too.
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (in.wanted[i] && back[i].id >= 0 && back[i].total) ct[static_cast<std::size_t>(arguments[i])] = back[i].id;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (in.wanted[i] && back[i].id >= 0 && !back[i].total) add(arguments[i], {&g, back[i].id});
  }

  constexpr void visit(int id) {
    const graph::node n = g.at(id);
    bool needed = false;
    for (int k = 0; k < n.operand_count(); ++k) needed |= matters(n.operands[k]);
    if (!needed || is(n.code, graph::op_kind::result)) return;
    if (n.type.pending != combine::sum) note_fault(g, message::grad_pending_extremum, id);
    const cotangents back = node_cotangents(g, id, {&g, ct[static_cast<std::size_t>(id)]});
    for (int k = 0; k < n.operand_count(); ++k)
      if (back.of[k].id >= 0 && matters(n.operands[k])) add(n.operands[k], back.of[k]);
  }

  constexpr void run() {
    for (int i = static_cast<int>(ct.size()) - 1; i >= 0; --i) {
      if (!matters(i)) continue;
      if (g.at(i).code == op::control) visit_control(i);
      else if (ct[static_cast<std::size_t>(i)] >= 0) visit(i);
    }
  }
};

/// Adds the cotangents of the nodes `wrt` that the seeds lead to and returns their ids, each of exactly the type of its
/// node. A node that no seed depends on has a cotangent of zeros.
constexpr graph::list<int> gradients(graph::graph& g, std::span<const seed> seeds, std::span<const int> wrt,
                                     policies around = {}) {
  int last = -1;
  for (const seed& s : seeds) last = s.node > last ? s.node : last;
  reverse_pass pass(g, last, wrt, around);
  for (const seed& s : seeds) pass.add(s.node, {&g, s.cotangent});
  pass.run();
  graph::list<int> result;
  for (int w : wrt) {
    const bool reached = w <= last && pass.ct[static_cast<std::size_t>(w)] >= 0;
    result.push_back(reached ? pass.ct[static_cast<std::size_t>(w)] : graph::zeros(&g, cotangent_type(g.type(w))).id);
  }
  return result;
}

/// The gradients of the scalar `loss`.
constexpr graph::list<int> gradients(graph::graph& g, int loss, std::span<const int> wrt) {
  const seed one{loss, graph::full(&g, g.type(loss), 1.0).id};
  return gradients(g, std::span(&one, 1), wrt);
}

}  // namespace tessera::transform

#include <tessera/transform/grad_control.hpp>  // defines control_cotangents, which needs all of this
