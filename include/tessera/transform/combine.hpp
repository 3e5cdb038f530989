// SPDX-License-Identifier: Apache-2.0
// All-reduces that need not wait for each other become one: graph in, the same graph with groups marked.
#pragma once

#include <tessera/graph/graph.hpp>

namespace tessera::transform {

using graph::op;

/// For each node the nodes that use it, as one array with offsets.
struct users {
  graph::list<int> first{};
  graph::list<int> node{};

  constexpr explicit users(const graph::graph& g) : first(g.nodes.size() + 1, 0) {
    for (const graph::node& n : g.nodes)
      for (int k = 0; k < n.operand_count(); ++k) ++first[static_cast<std::size_t>(n.operands[k]) + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    node.resize(static_cast<std::size_t>(first.back()), 0);
    graph::list<int> next = first;
    for (int i = 0; i < g.size(); ++i)
      for (int k = 0; k < g.at(i).operand_count(); ++k)
        node[static_cast<std::size_t>(next[static_cast<std::size_t>(g.at(i).operands[k])]++)] = i;
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
      if (backward)
        for (int k = 0; k < g.at(id).operand_count(); ++k) push(g.at(id).operands[k]);
      else
        for (int u = used.first[i]; u < used.first[i + 1]; ++u) push(used.node[static_cast<std::size_t>(u)]);
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
        if (group_of[static_cast<std::size_t>(k)] == group && (before[static_cast<std::size_t>(k)] || after[static_cast<std::size_t>(k)]))
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

/// Combines all-reduces of one kind and dtype over the same axes wherever neither depends on the other. Members of a group carry
/// its number (from 1) as their last attribute; a group is one collective.
constexpr graph::graph combine_all_reduces(const graph::graph& g) {
  all_reduce_groups groups(g);
  for (int i = 0; i < g.size(); ++i)
    if (g.at(i).code == op::all_reduce) groups.place(i);
  graph::graph marked = g;
  for (int i = 0; i < g.size(); ++i)
    if (const int group = groups.group_of[static_cast<std::size_t>(i)]; group >= 0)
      marked.at(i).attribute[3] = static_cast<std::uint64_t>(group) + 1;
  return marked;
}

}  // namespace tessera::transform
