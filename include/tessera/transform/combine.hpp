// SPDX-License-Identifier: Apache-2.0
// All-reduces that need not wait for each other become one: graph in, the same graph with groups marked.
#pragma once

#include <tessera/graph/graph.hpp>

#include <algorithm>

namespace tessera::transform {

using graph::op;

/// For each node the nodes that use it, as one array with offsets.
struct users {
  graph::list<int> first{};
  graph::list<int> node{};

  constexpr explicit users(const graph::graph& g) : first(g.nodes.size() + 1, 0) {
    for (const graph::node& n : g.nodes) {
      const int operands = n.operand_count();
      for (int k = 0; k < operands; ++k) ++first[static_cast<std::size_t>(n.operands[k]) + 1];
    }
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    node.resize(static_cast<std::size_t>(first.back()), 0);
    graph::list<int> next = first;
    for (int i = 0; i < g.size(); ++i) {
      const graph::node& n = g.at(i);
      const int operands = n.operand_count();
      for (int k = 0; k < operands; ++k)
        node[static_cast<std::size_t>(next[static_cast<std::size_t>(n.operands[k])]++)] = i;
    }
  }
};

/// The groups of all-reduces found so far; members of a group count as one node when dependencies are followed.
struct all_reduce_groups {
  const graph::graph& g;
  users used;
  graph::list<int> group_of;  ///< group of each node, or -1
  graph::list<int> member{};  ///< all grouped nodes, in order

  constexpr explicit all_reduce_groups(const graph::graph& graph_in)
      : g(graph_in), used(graph_in), group_of(graph_in.nodes.size(), -1) {}

  /// Marks everything that `from` reaches through users, or through operands if `backward`.
  constexpr graph::list<char> reach(int from, bool backward) const {
    graph::list<char> seen(g.nodes.size(), 0);
    graph::list<int> stack{from};
    const auto push = [&](int id) {
      if (seen[static_cast<std::size_t>(id)]) return;
      seen[static_cast<std::size_t>(id)] = 1;
      stack.push_back(id);
    };
    while (!stack.empty()) {
      const int id = stack.back();
      stack.pop_back();
      const auto i = static_cast<std::size_t>(id);
      if (group_of[i] >= 0)
        for (int m : member)
          if (group_of[static_cast<std::size_t>(m)] == group_of[i]) push(m);
      if (backward) {
        const graph::node& n = g.at(id);
        const int operands = n.operand_count();
        for (int k = 0; k < operands; ++k) push(n.operands[k]);
      } else {
        const int last = used.first[i + 1];
        for (int u = used.first[i]; u < last; ++u) push(used.node[static_cast<std::size_t>(u)]);
      }
    }
    return seen;
  }

  /// Puts all-reduce `id` into the first group of its kind that it neither waits for nor holds up, or into a new one.
  constexpr void place(int id) {
    const graph::list<char> before = reach(id, true);
    const graph::list<char> after = reach(id, false);
    int chosen = id;
    for (int m : member) {
      const graph::node& other = g.at(m);
      const bool same = other.attribute[0] == g.at(id).attribute[0] && other.attribute[1] == g.at(id).attribute[1] &&
                        other.type.type == g.type(id).type;
      const int group = group_of[static_cast<std::size_t>(m)];
      bool independent = true;
      for (int k : member)
        if (group_of[static_cast<std::size_t>(k)] == group &&
            (before[static_cast<std::size_t>(k)] || after[static_cast<std::size_t>(k)]))
          independent = false;
      if (same && independent) {
        chosen = group;
        break;
      }
    }
    group_of[static_cast<std::size_t>(id)] = chosen;
    member.push_back(id);
  }
};

/// Nodes in an order in which each comes after its operands and a group's members follow one another; where there is a
/// choice, as they were.
constexpr graph::list<int> grouped_order(const graph::graph& g, const users& used, const graph::list<int>& group_of) {
  const auto leader = [&](int id) {
    return group_of[static_cast<std::size_t>(id)] < 0 ? id : group_of[static_cast<std::size_t>(id)];
  };
  graph::list<int> waiting(g.nodes.size(), 0);
  for (int i = 0; i < g.size(); ++i) waiting[static_cast<std::size_t>(leader(i))] += g.at(i).operand_count();
  graph::list<int> ready;
  const auto later = [](int a, int b) { return a > b; };
  for (int i = 0; i < g.size(); ++i)
    if (leader(i) == i && waiting[static_cast<std::size_t>(i)] == 0) ready.push_back(i);
  std::make_heap(ready.begin(), ready.end(), later);
  graph::list<int> order;
  const auto emit = [&](int id) {
    order.push_back(id);
    for (int u = used.first[static_cast<std::size_t>(id)]; u < used.first[static_cast<std::size_t>(id) + 1]; ++u) {
      const int user = leader(used.node[static_cast<std::size_t>(u)]);
      if (--waiting[static_cast<std::size_t>(user)] > 0) continue;
      ready.push_back(user);
      std::push_heap(ready.begin(), ready.end(), later);
    }
  };
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const int id = ready.back();
    ready.pop_back();
    if (group_of[static_cast<std::size_t>(id)] < 0) {
      emit(id);
      continue;
    }
    for (int i = id; i < g.size(); ++i)
      if (group_of[static_cast<std::size_t>(i)] == id) emit(i);
  }
  return order;
}

/// The same graph with nodes in another order.
constexpr graph::graph reorder(const graph::graph& g, const graph::list<int>& order) {
  graph::list<int> place(g.nodes.size(), -1);
  graph::graph result;
  result.mesh = g.mesh;
  result.bodies = g.bodies;
  result.nodes.reserve(g.nodes.size());
  result.parameters.resize(g.parameters.size(), -1);
  for (int id : order) {
    graph::node n = g.at(id);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    place[static_cast<std::size_t>(id)] = result.add(n);
    if (n.code == op::parameter) result.parameters[static_cast<std::size_t>(n.attribute[0])] = result.size() - 1;
  }
  for (const graph::output& out : g.outputs)
    result.outputs.push_back({place[static_cast<std::size_t>(out.node)], out.alias});
  return result;
}

/// Combines all-reduces of one kind and dtype over the same axes wherever neither depends on the other. Members of a
/// group carry its number (from 1) as their last attribute and stand side by side; a group is one collective.
constexpr graph::graph combine_all_reduces(const graph::graph& whole) {
  graph::graph g = whole;
  for (graph::graph& body : g.bodies) body = combine_all_reduces(body);
  int count = 0;
  for (const graph::node& n : g.nodes) count += n.code == op::all_reduce;
  if (count == 0) return g;
  all_reduce_groups groups(g);
  for (int i = 0; i < g.size(); ++i)
    if (g.at(i).code == op::all_reduce) groups.place(i);
  for (int m : groups.member)
    g.at(m).attribute[3] = static_cast<std::uint64_t>(groups.group_of[static_cast<std::size_t>(m)]) + 1;
  return reorder(g, grouped_order(g, groups.used, groups.group_of));
}

}  // namespace tessera::transform
