// SPDX-License-Identifier: Apache-2.0
// Which nodes run as one kernel: elementwise nodes over the same blocks, and all-reduces of one group.
#pragma once

#include <tessera/graph/graph.hpp>

namespace tessera::transform {

using graph::op;

/// A set of nodes that become one step. Units run in the order of their numbers.
struct unit {
  int leader = -1;   ///< its first node
  int sources = 0;   ///< arrays read from memory, at most
  int nodes = 0;
  int lanes = 0;     ///< bytes of its vector elements, 0 if only bool is seen, -1 if types of several sizes meet
};

struct fusion {
  graph::list<unit> units{};
  graph::list<int> unit_of{};  ///< of each node, or -1 where nothing runs
};

/// Limits of one fused kernel, in arrays read and in instructions, so that it stays in registers.
inline constexpr int max_fused_sources = 16;
inline constexpr int max_fused_nodes = 40;

/// Whether the node is computed by the step of someone else, or needs no step.
constexpr bool runs_nowhere(op code) {
  return code == op::parameter || code == op::constant || code == op::iota || code == op::reshape ||
         code == op::broadcast || code == op::transpose || code == op::local_slice;
}

/// The node whose memory holds `id`: views are looked through.
constexpr int stored_node(const graph::graph& g, int id) {
  while (is(g.at(id).code, graph::op_kind::view) || is(g.at(id).code, graph::op_kind::check)) id = g.at(id).operands[0];
  return id;
}

/// The node that a read of `id` waits for: besides views, ways of reading are looked through.
constexpr int awaited_node(const graph::graph& g, int id) {
  for (;;) {
    id = stored_node(g, id);
    const op code = g.at(id).code;
    if (code != op::broadcast && code != op::transpose && code != op::local_slice) return id;
    id = g.at(id).operands[0];
  }
}

constexpr int lanes_of(dtype d) { return d == dtype::bool_ ? 0 : static_cast<int>(info(d).size); }

constexpr int join_lanes(int a, int b) { return a == 0 ? b : b == 0 || a == b ? a : -1; }

constexpr int lanes_of(const graph::graph& g, int id) {
  int lanes = lanes_of(g.type(id).type);
  for (int k = 0; k < g.at(id).operand_count(); ++k) lanes = join_lanes(lanes, lanes_of(g.type(g.at(id).operands[k]).type));
  return lanes;
}

/// Whether elementwise node `id` may run within unit number `number`: over the same blocks, with everything it reads
/// from elsewhere computed by earlier units.
constexpr bool can_join(const graph::graph& g, const fusion& f, int id, int number) {
  const unit& u = f.units[static_cast<std::size_t>(number)];
  const graph::node& n = g.at(id);
  if (!is(g.at(u.leader).code, graph::op_kind::elementwise) || !g.type(u.leader).same_shape(n.type) ||
      g.type(u.leader).varying != n.type.varying)
    return false;
  const int lanes = join_lanes(u.lanes, lanes_of(g, id));
  if (lanes < 0 || u.lanes < 0 || u.nodes >= max_fused_nodes || u.sources + n.operand_count() > max_fused_sources) return false;
  for (int k = 0; k < n.operand_count(); ++k) {
    const int operand = n.operands[k];
    const int waits_for = f.unit_of[static_cast<std::size_t>(awaited_node(g, operand))];
    if (waits_for > number) return false;
    if (waits_for == number && (f.unit_of[static_cast<std::size_t>(operand)] != number)) return false;
  }
  return true;
}

/// The unit for elementwise node `id`: the latest one that computes an operand, else the latest one that reads one, if
/// it can join; else -1.
constexpr int unit_to_join(const graph::graph& g, const fusion& f, int id, const graph::list<int>& last_reader) {
  int producer = -1;
  int reader = -1;
  for (int k = 0; k < g.at(id).operand_count(); ++k) {
    const int awaited = awaited_node(g, g.at(id).operands[k]);
    const int made = f.unit_of[static_cast<std::size_t>(awaited)];
    const int read = last_reader[static_cast<std::size_t>(awaited)];
    producer = made > producer ? made : producer;
    reader = read > reader ? read : reader;
  }
  if (reader >= 0 && reader >= producer && can_join(g, f, id, reader)) return reader;
  return producer >= 0 && can_join(g, f, id, producer) ? producer : -1;
}

/// Assigns every node to a unit, in one pass in order of computation.
constexpr fusion fuse(const graph::graph& g) {
  fusion f;
  f.unit_of.resize(g.nodes.size(), -1);
  graph::list<int> last_reader(g.nodes.size(), -1);
  for (int i = 0; i < g.size(); ++i) {
    const graph::node& n = g.at(i);
    if (runs_nowhere(n.code)) continue;
    int number = -1;
    if (is(n.code, graph::op_kind::elementwise)) number = unit_to_join(g, f, i, last_reader);
    const bool grouped = n.code == op::all_reduce && i > 0 && g.at(i - 1).code == op::all_reduce && n.attribute[3] != 0 &&
                         g.at(i - 1).attribute[3] == n.attribute[3];
    if (grouped) number = f.unit_of[static_cast<std::size_t>(i) - 1];
    if (number < 0) {
      number = static_cast<int>(f.units.size());
      f.units.push_back({i});
    }
    unit& u = f.units[static_cast<std::size_t>(number)];
    f.unit_of[static_cast<std::size_t>(i)] = number;
    u.lanes = u.nodes == 0 ? lanes_of(g, i) : join_lanes(u.lanes, lanes_of(g, i));
    ++u.nodes;
    for (int k = 0; k < n.operand_count(); ++k) {
      const int awaited = awaited_node(g, n.operands[k]);
      if (f.unit_of[static_cast<std::size_t>(n.operands[k])] != number) ++u.sources;
      const bool reads_memory = is(n.code, graph::op_kind::elementwise) && g.type(awaited).rank > 0;
      if (reads_memory) last_reader[static_cast<std::size_t>(awaited)] = number;
    }
  }
  return f;
}

}  // namespace tessera::transform
