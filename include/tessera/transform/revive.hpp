// SPDX-License-Identifier: Apache-2.0
// Values that are cheap to make and whose next use is far away are computed again there, from arrays that live on
// anyway, instead of being kept: graph in, graph out.
#pragma once

#include <tessera/transform/cheap.hpp>
#include <tessera/transform/fuse.hpp>
#include <tessera/transform/simplify.hpp>

#include <algorithm>
#include <utility>

namespace tessera::transform {

/// The pass's state.
struct revival {
  const graph::graph& g;
  graph::list<int> last_use{};  ///< by node: the last one that reads it, through ways of reading
  graph::list<int> place{};     ///< by node: where its latest copy stands in `result`
  graph::list<int> used_at{};   ///< by node: when the latest copy was last used
  graph::graph result{};

  /// Nodes that it may take to compute a value again.
  static constexpr int longest_chain = 24;
  /// An array counts as little that is so many times smaller than the value.
  static constexpr std::int64_t little = 64;

  constexpr explicit revival(const graph::graph& graph_in)
      : g(graph_in),
        last_use(graph_in.nodes.size(), -1),
        place(graph_in.nodes.size(), -1),
        used_at(graph_in.nodes.size(), -1) {
    result.mesh = g.mesh;
    result.bodies = g.bodies;
    result.nodes.reserve(g.nodes.size());
    for (int i = 0; i < g.size(); ++i)
      graph::for_each_read(g, i, [&](int read) { last_use[static_cast<std::size_t>(awaited_node(g, read))] = i; });
    for (const graph::output& o : g.outputs) last_use[static_cast<std::size_t>(stored_node(g, o.node))] = g.size();
  }

  constexpr bool is_elementwise(int id) const { return is(g.at(id).code, graph::op_kind::elementwise); }

  /// Whether a value may be made once more.
  constexpr bool repeats(int id) const { return is_elementwise(id) || is_light(g, id); }

  /// Whether an array is there at `user` anyway, or takes little memory beside one of `bytes`.
  constexpr bool at_hand(int id, int user, std::int64_t bytes) const {
    return last_use[static_cast<std::size_t>(id)] >= user || little * g.type(id).bytes() <= bytes;
  }

  /// Nodes that make `id`, for a value of `bytes`, from arrays that are at hand at `user`, or more than a chain may
  /// have.
  constexpr int chain(int id, int user, int room, std::int64_t bytes) const {
    if (room < 0) return longest_chain + 1;
    const graph::node& n = g.at(id);
    if (is(n.code, graph::op_kind::source)) return 0;
    if (is_way_of_reading(n.code) || is(n.code, graph::op_kind::view)) return chain(n.operands[0], user, room, bytes);
    if (!repeats(id)) return at_hand(id, user, bytes) ? 0 : longest_chain + 1;
    int count = 1;
    for (int k = 0; k < n.operand_count() && count <= longest_chain; ++k)
      count += chain(n.operands[k], user, room - count, bytes);
    return count > longest_chain && last_use[static_cast<std::size_t>(id)] >= user ? 0 : count;
  }

  /// Whether the latest copy of `id` was used long before `user`.
  constexpr bool is_old(int id, int user) const {
    const int used = used_at[static_cast<std::size_t>(id)];
    return used < 0 || user - used > far_apart;
  }

  /// `id` for `user`, made again from old values where its latest copy is old. Later users find it too.
  constexpr int copy(int id, int user) {
    const graph::node& n = g.at(id);
    const auto at = static_cast<std::size_t>(id);
    const bool again = repeats(id) || is_way_of_reading(n.code) || is(n.code, graph::op_kind::view);
    if (!again) return place[at];
    if (!is_old(id, user) || chain(id, user, longest_chain, g.type(id).bytes()) == 0) {
      used_at[at] = user;
      return place[at];
    }
    graph::node copied = n;
    for (int k = 0; k < n.operand_count(); ++k) copied.operands[k] = copy(n.operands[k], user);
    used_at[at] = user;
    return place[at] = result.add(copied);
  }

  /// Where node `user` finds its operand `id`, which is not itself elementwise.
  constexpr int find(int id, int user) {
    const int made = awaited_node(g, id);
    const auto at = static_cast<std::size_t>(made);
    const std::int64_t bytes = g.type(made).bytes();
    const bool gone = repeats(made) && used_at[at] >= 0 && is_old(made, user) && bytes >= large_value &&
                      chain(made, user, longest_chain, bytes) <= longest_chain;
    if (gone) copy(made, user);
    used_at[at] = user;
    if (made == id) return place[at];
    // The ways of reading between the value and its user are written again where the value was.
    if (gone) refresh(id, made);
    return place[static_cast<std::size_t>(id)];
  }

  constexpr void refresh(int id, int made) {
    if (id == made) return;
    refresh(g.at(id).operands[0], made);
    graph::node n = g.at(id);
    n.operands[0] = place[static_cast<std::size_t>(n.operands[0])];
    place[static_cast<std::size_t>(id)] = result.add(n);
  }

  constexpr graph::graph run() {
    for (int i = 0; i < g.size(); ++i) {
      graph::node n = g.at(i);
      const bool looks = !is_elementwise(i) && !is(n.code, graph::op_kind::list) && n.code != op::control &&
                         !is_way_of_reading(n.code) && !is(n.code, graph::op_kind::view);
      for (int k = 0; k < n.operand_count(); ++k) {
        const int operand = n.operands[k];
        n.operands[k] = looks ? find(operand, i) : place[static_cast<std::size_t>(operand)];
        if (is_elementwise(i)) used_at[static_cast<std::size_t>(awaited_node(g, operand))] = i;
      }
      place[static_cast<std::size_t>(i)] = result.add(n);
      if (n.code == op::parameter) result.parameters.push_back(result.size() - 1);
    }
    for (const graph::output& o : g.outputs)
      result.outputs.push_back({place[static_cast<std::size_t>(o.node)], o.alias});
    return eliminate_dead(std::move(result));
  }
};

/// Also in bodies.
constexpr graph::graph revive(const graph::graph& g) {
  graph::graph result = revival(g).run();
  for (graph::graph& body : result.bodies) body = revive(body);
  return result;
}

}  // namespace tessera::transform
