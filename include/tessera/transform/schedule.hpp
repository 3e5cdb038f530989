// SPDX-License-Identifier: Apache-2.0
// The order in which units run.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/graph.hpp>
#include <tessera/transform/fuse.hpp>

#include <algorithm>
#include <stdexcept>

namespace tessera::transform {

/// Where the piece of an update is made: in memory of its own, or in the array it is put into, after what the array
/// holds besides or at any time.
enum class piece_place : std::uint8_t { elsewhere, after_base, unordered };

/// Puts elementwise units that make more large values than they use up, and moves from host memory, right before the
/// first unit that reads them.
/// `users[first[u]], ...` are the units that wait for unit u.
struct late_order {
  const graph::graph& g;
  const fusion& f;
  const graph::list<int>& first;
  const graph::list<int>& users;
  graph::list<int> place{};                ///< by unit
  graph::list<char> stored{};              ///< by node: whether another unit reads it
  graph::list<graph::list<int>> before{};  ///< by unit: those that run right before it, the last one first
  graph::list<char> moved{};               ///< by unit

  constexpr late_order(const graph::graph& graph_in, const fusion& units, const graph::list<int>& first_user,
                       const graph::list<int>& users_in)
      : g(graph_in), f(units), first(first_user), users(users_in), stored(graph_in.nodes.size(), 0) {
    for (int i = 0; i < g.size(); ++i)
      graph::for_each_read(g, i, [&](int operand) {
        const int made = awaited_node(g, operand);
        if (f.unit_number(made) != f.unit_number(i)) stored[static_cast<std::size_t>(made)] = 1;
      });
  }

  template <class Visit>
  constexpr void for_each_user(int u, Visit visit) const {
    for (int e = first[static_cast<std::size_t>(u)]; e < first[static_cast<std::size_t>(u) + 1]; ++e)
      visit(users[static_cast<std::size_t>(e)]);
  }

  /// The first unit that waits for `u`, or -1.
  constexpr int first_reader(int u) const {
    int reader = -1;
    for_each_user(u, [&](int user) {
      if (reader < 0 || place[static_cast<std::size_t>(user)] < place[static_cast<std::size_t>(reader)]) reader = user;
    });
    return reader;
  }

  /// Bytes that unit `u` makes for others in large values.
  constexpr std::int64_t made_by(int u) const {
    std::int64_t bytes = 0;
    for (int i = f.at(u).first; i >= 0; i = f.next[static_cast<std::size_t>(i)])
      if (stored[static_cast<std::size_t>(i)] && g.type(i).bytes() >= large_value) bytes += g.type(i).bytes();
    return bytes;
  }

  /// Bytes that would be kept longer if unit `u` ran at `when`: arrays that nobody else reads by then or later.
  constexpr std::int64_t kept_longer(int u, int when) const {
    std::int64_t bytes = 0;
    graph::list<int> seen;
    for (int i = f.at(u).first; i >= 0; i = f.next[static_cast<std::size_t>(i)])
      graph::for_each_read(g, i, [&](int operand) {
        const int made = awaited_node(g, operand);
        const int maker = f.unit_number(made);
        if (maker < 0 || maker == u || std::find(seen.begin(), seen.end(), made) != seen.end()) return;
        seen.push_back(made);
        bool read_later = false;
        for_each_user(maker, [&](int user) {
          read_later = read_later || (user != u && place[static_cast<std::size_t>(user)] >= when);
        });
        if (!read_later) bytes += g.type(made).bytes();
      });
    return bytes;
  }

  constexpr void append(int u, graph::list<int>& result) const {
    const graph::list<int>& early = before[static_cast<std::size_t>(u)];
    for (std::size_t i = early.size(); i-- > 0;) append(early[i], result);
    result.push_back(u);
  }

  constexpr graph::list<int> of(const graph::list<int>& order) {
    place.resize(order.size(), 0);
    before.resize(order.size());
    moved.resize(order.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    for (std::size_t i = order.size(); i-- > 0;) {
      const int u = order[i];
      const op code = g.at(f.at(u).first).code;
      if (!is(code, graph::op_kind::elementwise) && code != op::from_host) continue;
      const int reader = first_reader(u);
      if (reader < 0) continue;
      const int soonest = place[static_cast<std::size_t>(reader)];
      const bool pays = code == op::from_host || made_by(u) > kept_longer(u, soonest);
      if (soonest <= static_cast<int>(i) + 1 || !pays) continue;
      before[static_cast<std::size_t>(reader)].push_back(u);
      moved[static_cast<std::size_t>(u)] = 1;
      place[static_cast<std::size_t>(u)] = soonest;
    }
    graph::list<int> result;
    for (int u : order)
      if (!moved[static_cast<std::size_t>(u)]) append(u, result);
    return result;
  }
};

/// The units in an order in which each comes after those it waits for; where there is a choice, as the trace has them.
/// The piece of an update that is made in place waits for the base.
constexpr graph::list<int> schedule(const graph::graph& g, const fusion& f, const graph::list<piece_place>& in_place) {
  const std::size_t count = f.units.size();
  graph::list<int> waiting(count, 0);
  graph::list<int> first(count + 1, 0);
  const auto for_each_dependency = [&](auto visit) {
    for (int i = 0; i < g.size(); ++i) {
      const int user = f.unit_number(i);
      if (user < 0) continue;
      graph::for_each_read(g, i, [&](int operand) {
        const int awaited = f.unit_number(awaited_node(g, operand));
        if (awaited >= 0 && awaited != user) visit(static_cast<std::size_t>(awaited), user);
      });
      if (in_place[static_cast<std::size_t>(i)] != piece_place::after_base) continue;
      const int base = f.unit_number(stored_node(g, g.at(i).operands[0]));
      const int piece = f.unit_number(stored_node(g, g.at(i).operands[1]));
      if (base >= 0 && base != piece) visit(static_cast<std::size_t>(base), piece);
    }
  };
  for_each_dependency(
      [&](std::size_t awaited, int user) { ++first[awaited + 1], ++waiting[static_cast<std::size_t>(user)]; });
  for (std::size_t i = 1; i <= count; ++i) first[i] += first[i - 1];
  graph::list<int> users(static_cast<std::size_t>(first[count]), 0);
  graph::list<int> place = first;
  for_each_dependency([&](std::size_t awaited, int user) { users[static_cast<std::size_t>(place[awaited]++)] = user; });

  const auto later = [&](int a, int b) { return f.at(a).first > f.at(b).first; };
  graph::list<int> ready;
  for (std::size_t u = 0; u < count; ++u)
    if (waiting[u] == 0) ready.push_back(static_cast<int>(u));
  std::make_heap(ready.begin(), ready.end(), later);
  graph::list<int> order;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const auto u = static_cast<std::size_t>(ready.back());
    ready.pop_back();
    order.push_back(static_cast<int>(u));
    for (int e = first[u]; e < first[u + 1]; ++e) {
      if (--waiting[static_cast<std::size_t>(users[static_cast<std::size_t>(e)])] > 0) continue;
      ready.push_back(users[static_cast<std::size_t>(e)]);
      std::push_heap(ready.begin(), ready.end(), later);
    }
  }
  if (order.size() != count) throw std::logic_error("schedule: units wait for each other in a ring");
  return late_order(g, f, first, users).of(order);
}

}  // namespace tessera::transform
