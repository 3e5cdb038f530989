// SPDX-License-Identifier: Apache-2.0
// Elementwise values that a later kernel can compute from arrays it reads anyway are computed there once more instead
// of being stored: graph and units in, graph and units out.
#pragma once

#include <tessera/transform/fuse.hpp>
#include <tessera/transform/remake_weights.hpp>
#include <tessera/transform/simplify.hpp>

#include <algorithm>

namespace tessera::transform {

/// A graph with its units.
struct fused_graph {
  graph::graph g{};
  fusion f{};
};

/// The pass's state. A value crosses if one unit makes it and another, elementwise one reads it.
struct recomputation {
  const graph::graph& g;
  const fusion& f;
  graph::list<char> stored{};   ///< by node: in memory whatever this pass does
  graph::list<int> clone_of{};  ///< by node: in the unit that is being looked at, its clone in `result`, or -1
  graph::list<int> stamp{};     ///< by node: the unit for which `clone_of` holds
  graph::list<int> unit_of{};   ///< by node of `result`
  graph::list<int> place{};     ///< by node
  graph::graph result{};

  /// Nodes that a chain may have that is computed once more, so that this stays cheaper than a trip to memory.
  static constexpr int longest_chain = 24;

  constexpr recomputation(const graph::graph& graph_in, const fusion& units)
      : g(graph_in),
        f(units),
        stored(graph_in.nodes.size(), 0),
        clone_of(graph_in.nodes.size(), -1),
        stamp(graph_in.nodes.size(), -1),
        place(graph_in.nodes.size(), -1) {
    result.mesh = g.mesh;
    result.bodies = g.bodies;
    for (int i = 0; i < g.size(); ++i) {
      if (!is_elementwise(i)) stored[static_cast<std::size_t>(i)] = 1;
      graph::for_each_read(g, i, [&](int read) {
        const int made = awaited_node(g, read);
        if (!is_elementwise(i) || !same_domain(made, i)) stored[static_cast<std::size_t>(made)] = 1;
      });
    }
    for (const graph::output& o : g.outputs) stored[static_cast<std::size_t>(stored_node(g, o.node))] = 1;
  }

  constexpr bool is_elementwise(int id) const { return is(g.at(id).code, graph::op_kind::elementwise); }

  constexpr bool same_domain(int a, int b) const {
    return g.type(a).same_shape(g.type(b)) && g.type(a).varying == g.type(b).varying;
  }

  /// Whether a node has vector elements of the width that a unit has.
  constexpr bool fits_lanes(int node, int unit) const {
    const int lanes = lanes_of(g, node);
    return lanes == 0 || lanes == f.at(unit).lanes;
  }

  /// Whether unit `unit` would read `v` from memory although it could be computed once more.
  constexpr bool crosses(int v, int unit, int reader) const {
    return f.unit_number(v) >= 0 && f.unit_number(v) != unit && is_elementwise(v) &&
           !stored[static_cast<std::size_t>(v)] && same_domain(v, reader) && fits_lanes(v, unit);
  }

  /// Whether `operand` of `v` is computed once more with it in a unit: it is of the same unit as `v`, or not in memory
  /// otherwise.
  constexpr bool goes_along(int operand, int v, int unit) const {
    const int made_in = f.unit_number(operand);
    if (made_in < 0 || !fits_lanes(operand, unit)) return false;
    return made_in == f.unit_number(v) ||
           (is_elementwise(operand) && !stored[static_cast<std::size_t>(operand)] && same_domain(operand, v));
  }

  /// Appends to `leaves` the arrays that `v` is computed from; returns the nodes in between, or more than fit.
  constexpr int collect(int v, int unit, int depth_left, graph::list<int>& leaves, graph::list<char>& seen) const {
    if (seen[static_cast<std::size_t>(v)]) return 0;
    seen[static_cast<std::size_t>(v)] = 1;
    int count = 1;
    for (int k = 0; k < g.at(v).operand_count() && count <= depth_left; ++k) {
      const int operand = g.at(v).operands[k];
      if (g.at(awaited_node(g, operand)).code == op::constant) continue;
      if (goes_along(operand, v, unit)) count += collect(operand, unit, depth_left - count, leaves, seen);
      else if (std::find(leaves.begin(), leaves.end(), operand) == leaves.end()) leaves.push_back(operand);
    }
    return count;
  }

  /// The values that `unit` computes once more: those that cross into it and are made from arrays it reads anyway, or
  /// all of them if that pays.
  constexpr graph::list<int> recomputed_in(int unit) const {
    graph::list<int> crossing;
    graph::list<int> sources;
    for (int i = f.at(unit).first; i >= 0; i = f.next[static_cast<std::size_t>(i)])
      for (int k = 0; k < g.at(i).operand_count(); ++k) {
        const int read = g.at(i).operands[k];
        if (f.unit_number(read) == unit) continue;
        graph::list<int>& list = crosses(read, unit, i) ? crossing : sources;
        if (std::find(list.begin(), list.end(), read) == list.end()) list.push_back(read);
      }
    if (crossing.empty()) return crossing;
    const int room = std::min(longest_chain, max_fused_nodes - f.at(unit).nodes);
    if (pays(crossing, unit, sources, room)) return crossing;
    graph::list<int> chosen;
    graph::list<char> cloned(g.nodes.size(), 0);
    int used = 0;
    for (int v : crossing) {
      graph::list<int> leaves;
      graph::list<char> seen = cloned;
      const int count = collect(v, unit, room - used, leaves, seen);
      bool at_hand = used + count <= room;
      for (int leaf : leaves) at_hand &= std::find(sources.begin(), sources.end(), leaf) != sources.end();
      if (!at_hand) continue;
      used += count;
      cloned = std::move(seen);
      chosen.push_back(v);
    }
    return chosen;
  }

  /// Whether all crossing values together can be computed again from fewer bytes than they have, besides the arrays
  /// that are read anyway; such an array has to be in memory.
  constexpr bool pays(const graph::list<int>& crossing, int unit, const graph::list<int>& sources, int room) const {
    graph::list<int> leaves;
    graph::list<char> seen(g.nodes.size(), 0);
    int count = 0;
    std::int64_t saved = 0;
    for (int v : crossing) {
      count += collect(v, unit, room - count, leaves, seen);
      if (count > room) return false;
      saved += g.type(v).bytes();
    }
    for (int leaf : leaves) {
      if (std::find(sources.begin(), sources.end(), leaf) != sources.end()) continue;
      if (is_elementwise(leaf) && !stored[static_cast<std::size_t>(leaf)]) return false;
      saved -= g.type(leaf).bytes();
    }
    return saved > 0;
  }

  constexpr int add(const graph::node& n, int unit) {
    unit_of.push_back(unit);
    return result.add(n);
  }

  /// The clone of `v` in `unit`.
  constexpr int clone(int v, int unit) {
    const auto at = static_cast<std::size_t>(v);
    if (stamp[at] == unit) return clone_of[at];
    graph::node n = g.at(v);
    for (int k = 0; k < n.operand_count(); ++k) {
      const int operand = n.operands[k];
      n.operands[k] = goes_along(operand, v, unit) ? clone(operand, unit) : place[static_cast<std::size_t>(operand)];
    }
    stamp[at] = unit;
    return clone_of[at] = add(n, unit);
  }

  constexpr fused_graph run() {
    graph::list<graph::list<int>> chosen(f.units.size());
    bool any = false;
    for (std::size_t u = 0; u < f.units.size(); ++u)
      if (is_elementwise(f.units[u].first)) {
        chosen[u] = recomputed_in(static_cast<int>(u));
        any |= !chosen[u].empty();
      }
    if (!any) return {g, f};
    result.nodes.reserve(g.nodes.size() + g.nodes.size() / 8);
    unit_of.reserve(g.nodes.size() + g.nodes.size() / 8);
    for (int i = 0; i < g.size(); ++i) {
      const graph::node& original = g.at(i);
      graph::node n = original;
      const int unit = f.unit_number(i);
      for (int k = 0; k < original.operand_count(); ++k) {
        const int operand = original.operands[k];
        const bool again =
            unit >= 0 && !chosen[static_cast<std::size_t>(unit)].empty() &&
            std::find(chosen[static_cast<std::size_t>(unit)].begin(), chosen[static_cast<std::size_t>(unit)].end(),
                      operand) != chosen[static_cast<std::size_t>(unit)].end();
        n.operands[k] = again ? clone(operand, unit) : place[static_cast<std::size_t>(operand)];
      }
      place[static_cast<std::size_t>(i)] = add(n, unit);
      if (original.code == op::parameter) result.parameters.push_back(result.size() - 1);
    }
    for (const graph::output& o : g.outputs)
      result.outputs.push_back({place[static_cast<std::size_t>(o.node)], o.alias});
    return without_dead();
  }

  /// The result without nodes that nobody reads any more, and its units.
  constexpr fused_graph without_dead() const {
    const graph::list<char> used = used_nodes(result);
    fused_graph out{eliminate_dead(result)};
    out.f.unit_of.resize(out.g.nodes.size(), -1);
    out.f.next.resize(out.g.nodes.size(), -1);
    graph::list<int> number(f.units.size(), -1);
    int at = 0;
    for (int i = 0; i < result.size(); ++i) {
      if (!used[static_cast<std::size_t>(i)]) continue;
      const int node = at++;
      const int unit = unit_of[static_cast<std::size_t>(i)];
      if (unit < 0) continue;
      int& renumbered = number[static_cast<std::size_t>(unit)];
      if (renumbered < 0) renumbered = static_cast<int>(out.f.units.size());
      out.f.add(renumbered, node);
      out.f.units[static_cast<std::size_t>(renumbered)].lanes = f.at(unit).lanes;
    }
    return out;
  }
};

/// Units of a graph, with cheap values computed where they are needed.
constexpr fused_graph fuse_units(const graph::graph& g) {
  const fusion f = fuse(g);
  return recomputation(g, f).run();
}

/// The same of a graph in which no weights of attention wait for a gradient.
constexpr fused_graph fuse_and_recompute(const graph::graph& g) {
  weight_remaker pass(g);
  if (!pass.found_some()) return fuse_units(g);
  const graph::graph remade = pass.run();
  return fuse_units(remade);
}

}  // namespace tessera::transform
