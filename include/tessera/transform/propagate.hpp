// SPDX-License-Identifier: Apache-2.0
// Axes that are left to the compiler: graph in, the same graph in which types name them too, as far as operations can
// be cut along them without moving data.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/manual.hpp>
#include <tessera/graph/value.hpp>

namespace tessera::transform {

using graph::op;

/// The dimension that a node of rows walks along.
constexpr int walked_dim(const graph::node& n) {
  const bool names_it = n.code == op::cumulative || n.code == op::recurrence || n.code == op::argsort;
  return names_it ? static_cast<int>(n.attribute[0]) : n.type.rank - 1;
}

/// The pass's state. A node of the result lies as the old one, and further along axes that are automatic there: behind
/// the others in each dimension.
struct propagator {
  const graph::graph& from;
  graph::graph result{};
  graph::list<int> place{};        ///< where each old node went
  graph::list<int> original{};     ///< the node that lies as the old one, or -1
  graph::list<axis_set> autos{};   ///< by old node: the automatic axes
  graph::list<aval> wish{};        ///< by old node: how those who read it want it to lie
  graph::list<aval> parameters{};  ///< of a body: how those behind the number of the trip lie

  constexpr explicit propagator(const graph::graph& g) : from(g) {
    result.mesh = g.mesh;
    result.bodies = g.bodies;
    find_autos(g.mesh.axes_of(axis_kind::auto_));
    find_wishes();
  }
  /// For a body in which the axes of `automatic` are.
  constexpr propagator(const graph::graph& g, const graph::list<aval>& types, axis_set automatic)
      : from(g), parameters(types) {
    result.mesh = g.mesh;
    result.bodies = g.bodies;
    find_autos(automatic);
    find_wishes();
  }

  /// A node's automatic axes are those of the mesh and of its operands; the boundaries of regions add and take away.
  constexpr void find_autos(axis_set everywhere) {
    for (int i = 0; i < from.size(); ++i) {
      const graph::node& n = from.at(i);
      axis_set set = everywhere;
      if (n.code == op::control)
        for (int argument : graph::arguments_of(from, i))
          set = static_cast<axis_set>(set | autos[static_cast<std::size_t>(argument)]);
      else if (!is(n.code, graph::op_kind::list))
        for (int k = 0; k < n.operand_count(); ++k)
          set = static_cast<axis_set>(set | autos[static_cast<std::size_t>(n.operands[k])]);
      const auto named = [&] { return set_of(static_cast<axis_list>(n.attribute[0])); };
      if (n.code == op::to_auto) set = static_cast<axis_set>(set | named());
      if (n.code == op::to_explicit) set = static_cast<axis_set>(set & ~named());
      autos.push_back(set);
    }
  }

  /// What leaves a region is wanted as it leaves; elementwise operations and contractions pass that on.
  constexpr void find_wishes() {
    for (const graph::node& n : from.nodes) wish.push_back(n.type);
    for (int i = from.size() - 1; i >= 0; --i) {
      const graph::node& n = from.at(i);
      const aval wanted = n.code == op::to_explicit ? n.type : wish[static_cast<std::size_t>(i)];
      if (wanted == n.type && n.code != op::to_explicit) continue;
      const auto hand = [&](int operand, int d, int to) {
        const aval& type = from.type(n.operands[operand]);
        dim& at = wish[static_cast<std::size_t>(n.operands[operand])].dims[to];
        if (type.dims[to].extent == wanted.dims[d].extent && at.axes == type.dims[to].axes &&
            starts_with(wanted.dims[d].axes, at.axes))
          at.axes = wanted.dims[d].axes;
      };
      if (n.code == op::to_explicit || is(n.code, graph::op_kind::elementwise)) {
        for (int k = 0; k < n.operand_count(); ++k)
          for (int d = 0; d < from.type(n.operands[k]).rank; ++d) hand(k, d, d);
      } else if (n.code == op::dot) {
        for_each_free_dim(n, hand);
      }
    }
  }

  /// Calls f(operand, dimension of the result, dimension of the operand) for all that are not summed over.
  template <class F>
  constexpr void for_each_free_dim(const graph::node& n, F f) const {
    const sharding::dot_dims dims = graph::dot_dims_of(n);
    int d = 0;
    for (int i = 0; i < sharding::dim_count(dims.lhs_batch); ++i, ++d) {
      f(0, d, sharding::dim_at(dims.lhs_batch, i));
      f(1, d, sharding::dim_at(dims.rhs_batch, i));
    }
    for (int k = 0; k < 2; ++k) {
      const sharding::dim_list free =
          sharding::free_dims(from.type(n.operands[k]).rank, k == 0 ? dims.lhs_contracting : dims.rhs_contracting,
                              k == 0 ? dims.lhs_batch : dims.rhs_batch);
      for (int i = 0; i < sharding::dim_count(free); ++i, ++d) f(k, d, sharding::dim_at(free, i));
    }
  }

  constexpr int placed(int id) const { return place[static_cast<std::size_t>(id)]; }

  /// How the new node of an operand lies further than the old one, along its dimension `d`.
  constexpr axis_list further(int id, int d) const {
    return without_head(result.type(placed(id)).dims[d].axes, from.type(id).dims[d].axes);
  }

  /// Cuts dimension `d` of `type`, so far as it was in `old`, by those of `axes` that are automatic, free and divide
  /// it.
  constexpr void cut(aval& type, const aval& old, int d, axis_list axes, axis_set automatic) const {
    if (type.dims[d].axes != old.dims[d].axes) return;
    for (int i = 0; i < axis_count(axes); ++i) {
      const int axis = axis_at(axes, i);
      const axis_set taken = static_cast<axis_set>(type.cut() | type.unreduced | type.reduced | type.varying);
      const axis_list longer = axis_append(type.dims[d].axes, axis);
      if ((automatic & bit_of(axis)) == 0 || (taken & bit_of(axis)) != 0 ||
          type.dims[d].extent % devices_along(longer, from.mesh) != 0)
        return;
      type.dims[d].axes = longer;
    }
  }

  /// The node of the result that lies as old node `id` did.
  constexpr int as_it_was(int id) {
    int& found = original[static_cast<std::size_t>(id)];
    if (found < 0) found = graph::reshard({&result, placed(id)}, from.type(id)).id;
    return found;
  }

  constexpr void put(int id, const graph::node& n) {
    place[static_cast<std::size_t>(id)] = result.add(n);
    if (n.type == from.type(id)) original[static_cast<std::size_t>(id)] = place[static_cast<std::size_t>(id)];
  }

  /// The type of a node whose dimensions but `whole` may be cut: what f(cut) gives, then what its readers wish. The
  /// operand of a transpose has to lie as its result does, others are moved where they are read.
  template <class F>
  constexpr void put_cut(int id, int whole, F f) {
    graph::node n = from.at(id);
    const aval old = n.type;
    const axis_set automatic = autos[static_cast<std::size_t>(id)];
    f([&](int d, axis_list axes) { cut(n.type, old, d, axes, automatic); });
    const aval& wanted = wish[static_cast<std::size_t>(id)];
    for (int d = 0; d < n.type.rank; ++d)
      if (d != whole && starts_with(wanted.dims[d].axes, old.dims[d].axes))
        cut(n.type, old, d, without_head(wanted.dims[d].axes, old.dims[d].axes), automatic);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = placed(n.operands[k]);
    if (n.code == op::transpose) {
      aval turned = result.type(n.operands[0]);
      for (int d = 0; d < n.type.rank; ++d) turned.dims[sharding::dim_at(n.attribute[0], d)].axes = n.type.dims[d].axes;
      n.operands[0] = graph::reshard({&result, n.operands[0]}, turned).id;
    }
    put(id, n);
  }

  /// Result dimensions lie further as those of operands do, but for the one that is walked along.
  constexpr void elementwise(int id, int whole) {
    const graph::node& n = from.at(id);
    put_cut(id, whole, [&](auto cut_dim) {
      for (int k = 0; k < n.operand_count(); ++k)
        for (int d = 0; d < from.type(n.operands[k]).rank; ++d)
          if (d != whole && from.type(n.operands[k]).dims[d].extent == n.type.dims[d].extent)
            cut_dim(d, further(n.operands[k], d));
    });
  }

  constexpr void reduction(int id) {
    const graph::node& n = from.at(id);
    const aval& operand = from.type(n.operands[0]);
    put_cut(id, -1, [&](auto cut_dim) {
      int to = 0;
      for (int d = 0; d < operand.rank; ++d) {
        const bool reduced = n.attribute[0] & (1U << d);
        if (!reduced) cut_dim(to, further(n.operands[0], d));
        to += !reduced || n.type.rank == operand.rank;
      }
    });
  }

  constexpr void movement(int id) {
    const graph::node& n = from.at(id);
    put_cut(id, -1, [&](auto cut_dim) {
      for (int d = 0; d < n.type.rank; ++d)
        for (int j = 0; j < from.type(n.operands[0]).rank; ++j) {
          const bool from_here = n.code == op::transpose   ? sharding::dim_at(n.attribute[0], d) == j
                                 : n.code == op::broadcast ? sharding::dim_at(n.attribute[0], j) == d
                                                           : d == j && n.type.rank == from.type(n.operands[0]).rank;
          if (from_here && from.type(n.operands[0]).dims[j].extent == n.type.dims[d].extent)
            cut_dim(d, further(n.operands[0], j));
        }
    });
  }

  /// A reshape that leaves every block where it is keeps the further cuts, another one gives them up first.
  constexpr void reshape(int id) {
    graph::node n = from.at(id);
    const ruling ruled = sharding::reshape(result.type(placed(n.operands[0])), n.type, nullptr, from.mesh);
    bool further_only = ruled.ok() && check_cuts(ruled.result, from.mesh).ok();
    for (int d = 0; further_only && d < n.type.rank; ++d)
      further_only = starts_with(ruled.result.dims[d].axes, n.type.dims[d].axes);
    if (!further_only) return untouched(id);
    for (int d = 0; d < n.type.rank; ++d) n.type.dims[d].axes = ruled.result.dims[d].axes;
    n.operands[0] = placed(n.operands[0]);
    put(id, n);
  }

  /// What no rule is known for runs as it is written.
  constexpr void untouched(int id) {
    graph::node n = from.at(id);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = as_it_was(n.operands[k]);
    put(id, n);
  }

  /// An array that enters a region, cut as outside; automatic axes come behind the others.
  constexpr aval as_it_lies(int id) const {
    const graph::node& n = from.at(id);
    aval type = result.type(placed(n.operands[0]));
    for (int d = 0; d < type.rank; ++d) {
      axis_list order = n.type.dims[d].axes;
      for (int i = 0; i < axis_count(type.dims[d].axes); ++i)
        if (const int axis = axis_at(type.dims[d].axes, i); (set_of(order) & bit_of(axis)) == 0)
          order = axis_append(order, axis);
      type.dims[d].axes = order;
    }
    return type;
  }

  /// An array enters as it lies, and leaves as its type says; where it is steered it lies so.
  constexpr void boundary(int id) {
    const graph::node& n = from.at(id);
    aval type = n.type;
    if (n.code == op::to_auto) type = as_it_lies(id);
    if (n.code == op::constrain)
      for (int d = 0; d < type.rank; ++d) {
        const auto axes = static_cast<axis_list>(n.attribute[d / 2] >> (32 * (d % 2)));
        cut(type, n.type, d, axes, autos[static_cast<std::size_t>(id)]);
      }
    int& here = place[static_cast<std::size_t>(id)];
    here = graph::reshard({&result, placed(n.operands[0])}, type).id;
    if (result.type(here) == n.type) original[static_cast<std::size_t>(id)] = here;
  }

  /// A parameter of a body lies as what it stands for.
  constexpr void parameter(int id) {
    graph::node n = from.at(id);
    result.parameters.push_back(result.size());
    const auto number = static_cast<std::size_t>(n.attribute[0]);
    if (number > 0 && number <= parameters.size()) n.type = parameters[number - 1];
    put(id, n);
  }

  constexpr void control(int id);

  constexpr void visit(int id) {
    const graph::node& n = from.at(id);
    if (n.code == op::parameter) return parameter(id);
    if (n.code == op::control && control_of(n).kind != graph::control_kind::custom_gradient &&
        autos[static_cast<std::size_t>(id)] != 0)
      return control(id);
    if (placed(id) >= 0) return;  // a result of a control node
    if (n.code == op::to_auto || n.code == op::to_explicit || n.code == op::constrain) return boundary(id);
    if (autos[static_cast<std::size_t>(id)] == 0) return untouched(id);
    switch (about(n.code).kind) {
      case graph::op_kind::elementwise:
      case graph::op_kind::transfer: return elementwise(id, -1);
      case graph::op_kind::rows: return elementwise(id, walked_dim(n));
      case graph::op_kind::reduction: return reduction(id);
      case graph::op_kind::contraction:
        return put_cut(id, -1, [&](auto cut_dim) {
          for_each_free_dim(n, [&](int k, int d, int at) { cut_dim(d, further(n.operands[k], at)); });
        });
      default: break;
    }
    if (n.code == op::reshape) return reshape(id);
    if (n.code == op::transpose || n.code == op::broadcast || n.code == op::reshard) return movement(id);
    return untouched(id);
  }

  constexpr void run_nodes() {
    place.resize(from.nodes.size(), -1);
    original.resize(from.nodes.size(), -1);
    for (int i = 0; i < from.size(); ++i) visit(i);
  }

  constexpr void run() {
    run_nodes();
    for (const graph::output& out : from.outputs) result.outputs.push_back({as_it_was(out.node), out.alias});
  }
};

constexpr bool has_automatic_axes(const graph::graph& g) {
  bool found = g.mesh.axes_of(axis_kind::auto_) != 0;
  for (const graph::node& n : g.nodes) found = found || n.code == op::to_auto || n.code == op::to_explicit;
  for (const graph::graph& body : g.bodies) found = found || has_automatic_axes(body);
  return found;
}

/// The graph without boundaries of automatic regions. What an array entered with, what leaves, and
/// with_sharding_constraint say how arrays lie along automatic axes; from there the cuts go forward through elementwise
/// operations, contractions, reductions and moves, and backward from what leaves a region through elementwise
/// operations and contractions. Where operands disagree the first one wins. Types outside of regions stay.
constexpr graph::graph propagate(const graph::graph& g) {
  if (!has_automatic_axes(g)) return g;
  propagator pass(g);
  for (graph::graph& body : pass.result.bodies) body = propagate(body);
  pass.run();
  return pass.result;
}

}  // namespace tessera::transform

#include <tessera/transform/propagate_control.hpp>
