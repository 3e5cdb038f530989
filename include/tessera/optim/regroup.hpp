// SPDX-License-Identifier: Apache-2.0
// The order in which an update is written: one parameter after another, so that each becomes one pass over memory.
#pragma once

#include <tessera/graph/graph.hpp>

#include <algorithm>
#include <utility>

namespace tessera::optim {

/// A state's node before an update, and after it.
struct replacement {
  int before = -1;
  int after = -1;
};

namespace detail {

/// A new order of the nodes that a graph has from number `first` on.
class node_order {
 public:
  constexpr node_order(const graph::graph& g, int first, const graph::list<replacement>& state) : g_(g), first_(first) {
    place.resize(static_cast<std::size_t>(g.size()), -1);
    for (int i = 0; i < first; ++i) place[static_cast<std::size_t>(i)] = i;
    next_state_.resize(static_cast<std::size_t>(first), -1);
    for (const replacement& r : state)
      if (r.before < first) next_state_[static_cast<std::size_t>(r.before)] = r.after;
    list_users();
  }

  graph::list<int> place{};  ///< the new number of each node, or -1
  graph::list<int> order{};  ///< the nodes from `first` on, as they will stand

  /// Numbers that are computed from numbers alone; they would only stand between the steps of an array.
  constexpr void put_numbers() {
    for (int i = first_; i < g_.size(); ++i) {
      const graph::node& n = g_.at(i);
      const bool number =
          n.type.rank == 0 && (is(n.code, graph::op_kind::elementwise) || n.code == graph::op::constant);
      if (number && ready(i)) put(i);
    }
  }

  /// What node `root` needs, then new values of state that it reads, and what can be computed with all these.
  constexpr void put_group(int root) {
    const std::size_t before = order.size();
    put_needed(root);
    for (std::size_t i = before; i < order.size(); ++i) {
      const graph::node& n = g_.at(order[i]);
      for (int k = 0; k < n.operand_count(); ++k)
        if (n.operands[k] < first_ && next_state_[static_cast<std::size_t>(n.operands[k])] >= 0)
          put_needed(next_state_[static_cast<std::size_t>(n.operands[k])]);
      for (int u = users_of(order[i]); u >= 0; u = next_user_[static_cast<std::size_t>(u)])
        if (place[static_cast<std::size_t>(u / operands)] < 0 && belongs(u / operands, order[i])) put(u / operands);
    }
  }

  /// Of what a node needs, what was written last comes first: numbers made of all arrays before parts of this one.
  constexpr void put_needed(int root) {
    graph::list<int> waiting{root};
    while (!waiting.empty()) {
      const int id = waiting.back();
      if (place[static_cast<std::size_t>(id)] < 0) {
        const std::size_t here = waiting.size();
        const graph::node& n = g_.at(id);
        for (int k = n.operand_count(); k-- > 0;)
          if (place[static_cast<std::size_t>(n.operands[k])] < 0) waiting.push_back(n.operands[k]);
        std::sort(waiting.begin() + here, waiting.end());
        if (waiting.size() > here) continue;
        put(id);
      }
      waiting.pop_back();
    }
  }

 private:
  static constexpr int operands = 3;

  /// Whether a user of node `id` can be computed beside it. That an array is multiplied by a number of all says
  /// nothing.
  constexpr bool belongs(int user, int id) const {
    return ready(user) && (g_.type(id).rank > 0 || g_.type(user).rank == 0);
  }

  constexpr void put(int id) {
    place[static_cast<std::size_t>(id)] = first_ + static_cast<int>(order.size());
    order.push_back(id);
  }
  constexpr bool ready(int id) const {
    const graph::node& n = g_.at(id);
    for (int k = 0; k < n.operand_count(); ++k)
      if (place[static_cast<std::size_t>(n.operands[k])] < 0) return false;
    return true;
  }

  /// For each new node a chain of its uses, each a node and which of its operands it is.
  constexpr void list_users() {
    const auto count = static_cast<std::size_t>(g_.size());
    first_user_.resize(count, -1);
    next_user_.resize(count * operands, -1);
    for (int i = g_.size(); i-- > first_;) {
      const graph::node& n = g_.at(i);
      for (int k = 0; k < n.operand_count(); ++k) {
        if (n.operands[k] < first_) continue;
        int& head = first_user_[static_cast<std::size_t>(n.operands[k])];
        next_user_[static_cast<std::size_t>(i * operands + k)] = std::exchange(head, i * operands + k);
      }
    }
  }
  constexpr int users_of(int id) const { return first_user_[static_cast<std::size_t>(id)]; }

  const graph::graph& g_;
  int first_;
  graph::list<int> first_user_{};
  graph::list<int> next_user_{};
  graph::list<int> next_state_{};
};

}  // namespace detail

/// Puts the nodes that were added to `g` since there were `first` into another order: numbers, then what the first of
/// `roots` needs and what follows from that, then the same for the second one, and so on; operands stay before their
/// users. Returns the new number of every node. Transformations write all parameters step by step; a kernel wants all
/// steps of one parameter side by side.
constexpr graph::list<int> regroup(graph::graph& g, int first, const graph::list<int>& roots,
                                   const graph::list<replacement>& state) {
  detail::node_order sorted(g, first, state);
  sorted.put_numbers();
  for (const int root : roots) sorted.put_group(root);
  for (int i = first; i < g.size(); ++i) sorted.put_needed(i);

  graph::list<graph::node> nodes;
  for (const int id : sorted.order) {
    nodes.push_back(g.at(id));
    graph::node& n = nodes.back();
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = sorted.place[static_cast<std::size_t>(n.operands[k])];
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) g.at(first + static_cast<int>(i)) = nodes[i];
  for (int& p : g.parameters) p = sorted.place[static_cast<std::size_t>(p)];
  for (graph::capture& c : g.captures) c.parameter = sorted.place[static_cast<std::size_t>(c.parameter)];
  return std::move(sorted.place);
}

}  // namespace tessera::optim
