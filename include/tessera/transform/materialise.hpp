// SPDX-License-Identifier: Apache-2.0
// Makes every operand something that its kernel can read: graph in, graph with copies where a view will not do.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/graph.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/transform/reading.hpp>
#include <tessera/transform/simplify.hpp>

#include <utility>

namespace tessera::transform {

/// How a contraction sees an operand: batch dimensions first, then free and contracting ones, either of them first.
struct dot_operand_layout {
  bool regular = false;
  bool contracting_first = false;
};

/// Whether the dimensions of `list` are first, first + 1, ...
constexpr bool is_run(sharding::dim_list list, int first) {
  for (int i = 0; i < sharding::dim_count(list); ++i)
    if (sharding::dim_at(list, i) != first + i) return false;
  return true;
}

constexpr dot_operand_layout layout_of(int rank, sharding::dim_list contracting, sharding::dim_list batch) {
  const int batches = sharding::dim_count(batch);
  const int summed = sharding::dim_count(contracting);
  if (!is_run(batch, 0)) return {};
  if (is_run(contracting, batches)) return {true, rank > batches + summed};
  if (is_run(contracting, rank - summed)) return {true, false};
  return {};
}

/// The pass's state.
struct materialiser {
  graph::graph result{};
  graph::list<int> place{};   ///< where each old node went
  graph::list<int> copied{};  ///< the copy of each new node, or -1

  constexpr int add(const graph::node& n) {
    copied.push_back(-1);
    return result.add(n);
  }

  constexpr int add_copy(int id) {
    graph::node n;
    n.code = op::copy;
    n.type = result.type(id);
    n.operands[0] = id;
    return add(n);
  }

  /// A node of its own with the same elements; one for all who ask.
  constexpr int copy_of(int id) {
    if (copied[static_cast<std::size_t>(id)] < 0) {
      const int made = add_copy(id);
      copied[static_cast<std::size_t>(id)] = made;
    }
    return copied[static_cast<std::size_t>(id)];
  }

  constexpr int stored(int id) { return is_unstored(result, id) ? copy_of(id) : id; }

  /// Whether node `n` reads its operand `k` through ways of reading, where that has no memory of its own.
  constexpr bool reads_through(const graph::node& n, int k) const {
    const int operand = n.operands[k];
    const auto steps_evenly = [&](const graph::node& s) {
      const sharding::slices taken = graph::slices_of(s, s.type);
      for (int d = 0; d < s.type.rank; ++d)
        if (taken.of[d].stride != 1) return false;
      return true;
    };
    switch (n.code) {
      case op::broadcast: return true;
      case op::reshape: {
        aval target = n.type;
        return sharding::only_ones_differ(result.type(operand), target);
      }
      case op::slice: return !counts_positions(result, operand) || steps_evenly(n);
      case op::local_slice: return result.at(operand).code == op::iota;
      case op::windows: return !counts_positions(result, operand);
      case op::update_slice: return k == 0 ? result.at(operand).code == op::empty : !counts_positions(result, operand);
      default: return is(n.code, graph::op_kind::elementwise);
    }
  }

  /// A transposed contraction operand is contracted along other dimensions instead, if the order of the rest allows it.
  constexpr void absorb_transpose(graph::node& n, int operand) const {
    const graph::node& turned = result.at(n.operands[operand]);
    if (turned.code != op::copy || result.at(turned.operands[0]).code != op::transpose) return;
    const sharding::dim_list permutation = result.at(turned.operands[0]).attribute[0];
    const int rank = turned.type.rank;
    const auto renamed = [&](sharding::dim_list list) {
      sharding::dim_list there = 0;
      for (int i = 0; i < sharding::dim_count(list); ++i)
        there = sharding::dim_append(there, sharding::dim_at(permutation, sharding::dim_at(list, i)));
      return there;
    };
    const sharding::dim_list contracting = renamed(n.attribute[operand]);
    const sharding::dim_list batch = renamed(n.attribute[2 + operand]);
    const sharding::dim_list free = renamed(sharding::free_dims(rank, n.attribute[operand], n.attribute[2 + operand]));
    if (free != sharding::free_dims(rank, contracting, batch) || !layout_of(rank, contracting, batch).regular) return;
    n.operands[operand] = result.at(turned.operands[0]).operands[0];
    n.attribute[operand] = contracting;
    n.attribute[2 + operand] = batch;
  }

  /// A contraction operand that no kernel reads as it lies is transposed: to batch, then free and contracting
  /// dimensions, of which those come last that do so already, so that the copy reads neighbours.
  constexpr void straighten(graph::node& n, int operand) {
    const int rank = result.type(n.operands[operand]).rank;
    const sharding::dim_list contracting = n.attribute[operand];
    const sharding::dim_list batch = n.attribute[2 + operand];
    if (layout_of(rank, contracting, batch).regular) return;
    sharding::dim_list order = batch;
    const sharding::dim_list free = sharding::free_dims(rank, contracting, batch);
    const bool last_is_free =
        sharding::dim_count(free) > 0 && sharding::dim_at(free, sharding::dim_count(free) - 1) == rank - 1;
    for (const sharding::dim_list dims : {last_is_free ? contracting : free, last_is_free ? free : contracting})
      for (int i = 0; i < sharding::dim_count(dims); ++i)
        order = sharding::dim_append(order, sharding::dim_at(dims, i));
    graph::node turned;
    turned.code = op::transpose;
    turned.type = result.type(n.operands[operand]);
    for (int i = 0; i < rank; ++i)
      turned.type.dims[i] = result.type(n.operands[operand]).dims[sharding::dim_at(order, i)];
    turned.operands[0] = n.operands[operand];
    turned.attribute[0] = order;
    n.operands[operand] = copy_of(add(turned));
    n.attribute[2 + operand] = graph::dims_in_order(sharding::dim_count(batch));
    n.attribute[operand] =
        graph::dims_in_order(sharding::dim_count(contracting),
                             last_is_free ? sharding::dim_count(batch) : rank - sharding::dim_count(contracting));
  }

  /// A reduction over dimensions that do not lie side by side is several, the last run first.
  constexpr int add_reduction(graph::node n) {
    auto dims = static_cast<sharding::dim_set>(n.attribute[0]);
    const aval final_type = n.type;
    for (;;) {
      const aval operand = result.type(n.operands[0]);
      int last = operand.rank - 1;
      while (!(dims & (1U << last))) --last;
      int first = last;
      while (first > 0 && (dims & (1U << (first - 1)))) --first;
      sharding::dim_set run = 0;
      for (int d = first; d <= last; ++d) run |= 1U << d;
      n.attribute[0] = run;
      if (run == dims) {
        n.type = final_type;
        return add(n);
      }
      n.type = operand;
      n.type.rank = 0;
      for (int d = 0; d < operand.rank; ++d) n.type.dims[d] = {};
      for (int d = 0; d < operand.rank; ++d)
        if (!(run & (1U << d))) n.type.dims[n.type.rank++] = operand.dims[d];
      n.operands[0] = add(n);
      dims &= ~run;
    }
  }

  constexpr void visit(graph::node n) {
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    for (int k = 0; k < n.operand_count(); ++k)
      if (!reads_through(n, k)) n.operands[k] = stored(n.operands[k]);
    if (n.code == op::dot)
      for (int k = 0; k < 2; ++k) {
        absorb_transpose(n, k);
        straighten(n, k);
      }
    if (is(n.code, graph::op_kind::reduction)) place.push_back(add_reduction(n));
    else if (n.code == op::transpose || (n.code == op::local_slice && !is_unstored(result, n.operands[0])))
      place.push_back(copy_of(add(n)));
    else place.push_back(add(n));
  }

  /// Each result needs memory of its own: a parameter, a view or a node that is already a result is copied.
  constexpr graph::output own(const graph::output& out, graph::list<char>& taken) {
    int id = place[static_cast<std::size_t>(out.node)];
    const op code = result.at(id).code;
    const bool shared =
        is(code, graph::op_kind::view) || is(code, graph::op_kind::check) || code == op::parameter || code == op::slice;
    if (shared || is_unstored(result, id) || taken[static_cast<std::size_t>(id)]) {
      id = add_copy(id);
      taken.push_back(0);
    }
    taken[static_cast<std::size_t>(id)] = 1;
    return {id, out.alias};
  }
};

/// After it, only elementwise nodes and pieces read constants, iotas, broadcasts and slices that are no parts of
/// memory; transposes and local slices are copied once; contractions are matrix products; reductions are over adjacent
/// dimensions; results are stored by their own node.
/// `around`: of the body of a scan, the scan; it may put out a carry as it comes in, which then needs no copy.
constexpr graph::graph materialise(const graph::graph& g, const graph::control* around = nullptr) {
  materialiser pass;
  pass.result.mesh = g.mesh;
  pass.result.bodies = g.bodies;
  pass.result.nodes.reserve(g.nodes.size() + g.nodes.size() / 8);
  pass.place.reserve(g.nodes.size());
  for (const graph::node& n : g.nodes) {
    if (n.code != op::control) continue;
    const graph::control c = graph::control_of(n);
    for (int b = c.body; b < c.body + c.bodies(); ++b)
      pass.result.bodies[static_cast<std::size_t>(b)] =
          materialise(g.bodies[static_cast<std::size_t>(b)], c.kind == graph::control_kind::scan ? &c : nullptr);
  }
  for (const graph::node& n : g.nodes) pass.visit(n);
  for (int p : g.parameters) pass.result.parameters.push_back(pass.place[static_cast<std::size_t>(p)]);
  graph::list<char> taken(pass.result.nodes.size(), 0);
  for (std::size_t o = 0; o < g.outputs.size(); ++o) {
    const int id = pass.place[static_cast<std::size_t>(g.outputs[o].node)];
    const bool stacks = around != nullptr && static_cast<int>(o) >= around->carries &&
                        around->is_carry(pass.result, id) && !taken[static_cast<std::size_t>(id)];
    if (stacks) {
      taken[static_cast<std::size_t>(id)] = 1;
      pass.result.outputs.push_back({id, -1});
    } else {
      pass.result.outputs.push_back(pass.own(g.outputs[o], taken));
    }
  }
  return eliminate_dead(std::move(pass.result));
}

}  // namespace tessera::transform
