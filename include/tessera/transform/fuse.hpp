// SPDX-License-Identifier: Apache-2.0
// Which nodes run as one kernel: elementwise nodes over the same blocks, and all-reduces of one group.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/graph.hpp>
#include <tessera/transform/reading.hpp>

#include <algorithm>

namespace tessera::transform {

/// A set of nodes that become one step.
struct unit {
  int first = -1;  ///< its first node; the others follow through `fusion::next`
  int last = -1;
  int nodes = 0;
  int sources = 0;       ///< operands from elsewhere, counted for each node
  int lanes = 0;         ///< bytes of its vector elements, 0 if only bool is seen, -1 if types of several sizes meet
  int level = 0;         ///< higher than that of every unit it waits for
  bool awaited = false;  ///< whether another unit waits for it; then its level is fixed
};

struct fusion {
  graph::list<unit> units{};
  graph::list<int> unit_of{};  ///< of each node, or -1 where nothing runs
  graph::list<int> next{};     ///< the next node of the same unit, or -1

  constexpr int unit_number(int node) const { return unit_of[static_cast<std::size_t>(node)]; }
  constexpr const unit& at(int number) const { return units[static_cast<std::size_t>(number)]; }

  constexpr void add(int number, int node) {
    if (number == static_cast<int>(units.size())) units.push_back({});
    unit& u = units[static_cast<std::size_t>(number)];
    if (u.nodes++ == 0) u.first = node;
    else next[static_cast<std::size_t>(u.last)] = node;
    u.last = node;
    unit_of[static_cast<std::size_t>(node)] = number;
  }
  constexpr graph::list<int> members(int number) const {
    graph::list<int> result;
    for (int i = at(number).first; i >= 0; i = next[static_cast<std::size_t>(i)]) result.push_back(i);
    return result;
  }
};

/// Values of at least so many bytes are not made so many nodes before they are used, nor kept that long where they can
/// be computed again.
inline constexpr std::int64_t large_value = 1 << 16;
inline constexpr int far_apart = 12;

/// Limits of one fused kernel, in arrays read and in instructions, so that it stays in registers.
inline constexpr int max_fused_sources = 40;
inline constexpr int max_fused_nodes = 40;

/// Whether the node is computed by the step of someone else, or needs no step.
constexpr bool runs_nowhere(op code) {
  return is(code, graph::op_kind::source) || code == op::reshape || is_way_of_reading(code) ||
         is(code, graph::op_kind::list);
}

/// The node whose memory holds `id`: views are looked through.
constexpr int stored_node(const graph::graph& g, int id) {
  for (;;) {
    const graph::node& n = g.nodes.first[id];
    if (const graph::op_kind kind = graph::op_table[static_cast<int>(n.code)].kind;
        kind != graph::op_kind::view && kind != graph::op_kind::check)
      return id;
    id = n.operands[0];
  }
}

/// The node that a read of `id` waits for: besides views, ways of reading are looked through.
constexpr int awaited_node(const graph::graph& g, int id) {
  for (;;) {
    const graph::node& n = g.nodes.first[id];
    if (const graph::op_kind kind = graph::op_table[static_cast<int>(n.code)].kind;
        kind != graph::op_kind::view && kind != graph::op_kind::check &&
        (kind != graph::op_kind::movement || !is_way_of_reading(n.code)))
      return id;
    id = n.operands[0];
  }
}

/// Bytes of an element in a register: bool is a mask of any width, 16-bit numbers are floats.
constexpr int lanes_of(dtype d) { return d == dtype::bool_ ? 0 : static_cast<int>(info(accumulator(d)).size); }

constexpr int join_lanes(int a, int b) { return a == 0 ? b : b == 0 || a == b ? a : -1; }

constexpr int lanes_of(const graph::graph& g, int id) {
  const graph::node& n = g.at(id);
  int lanes = lanes_of(n.type.type);
  const int operands = n.operand_count();
  for (int k = 0; k < operands; ++k)
    if (const dtype operand = g.type(n.operands[k]).type; operand != n.type.type)
      lanes = join_lanes(lanes, lanes_of(operand));
  return lanes;
}

/// Whether elementwise node `id` is made of the same blocks as a unit, and fits into it.
constexpr bool fits_into(const graph::graph& g, const fusion& f, int id, int number) {
  const unit& u = f.at(number);
  const graph::node& n = g.at(id);
  if (!is(g.at(u.first).code, graph::op_kind::elementwise) || !g.type(u.first).same_shape(n.type) ||
      g.type(u.first).varying != n.type.varying)
    return false;
  if (join_lanes(u.lanes, lanes_of(g, id)) < 0 || u.lanes < 0) return false;
  if (id - u.last > far_apart && n.type.bytes() >= large_value) return false;
  return u.nodes < max_fused_nodes && u.sources + n.operand_count() <= max_fused_sources;
}

/// The level that a unit needs to wait for what node `id` reads from other units than `number`.
constexpr int level_needed(const graph::graph& g, const fusion& f, int id, int number) {
  int level = 0;
  graph::for_each_read(g, id, [&](int operand) {
    const int awaited = f.unit_number(awaited_node(g, operand));
    if (awaited >= 0 && awaited != number && f.at(awaited).level >= level) level = f.at(awaited).level + 1;
  });
  return level;
}

/// Whether unit `from` waits for unit `number`, directly or through others; `seen` are those known not to.
constexpr bool waits_for(const graph::graph& g, const fusion& f, int from, int number, graph::list<int>& seen) {
  if (from == number) return true;
  if (f.at(from).level <= f.at(number).level || std::find(seen.begin(), seen.end(), from) != seen.end()) return false;
  seen.push_back(from);
  bool found = false;
  for (int i = f.at(from).first; i >= 0 && !found; i = f.next[static_cast<std::size_t>(i)])
    graph::for_each_read(g, i, [&](int operand) {
      const int awaited = f.unit_number(awaited_node(g, operand));
      found = found || (awaited >= 0 && awaited != from && waits_for(g, f, awaited, number, seen));
    });
  return found;
}

/// Whether nothing that node `id` reads from elsewhere waits for unit `number`, though their levels would allow it. It
/// is looked at for large values only, which two units would have to exchange through memory.
constexpr bool may_rise(const graph::graph& g, const fusion& f, int id, int number) {
  if (g.type(id).bytes() < large_value) return false;
  graph::list<int> seen;
  bool ring = false;
  graph::for_each_read(g, id, [&](int operand) {
    const int awaited = f.unit_number(awaited_node(g, operand));
    ring = ring || (awaited >= 0 && awaited != number && waits_for(g, f, awaited, number, seen));
  });
  return !ring;
}

/// Raises unit `number` to a level, and what waits for it above it.
constexpr void raise(const graph::graph& g, fusion& f, int number, int level) {
  f.units[static_cast<std::size_t>(number)].level = level;
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < g.size(); ++i) {
      const int here = f.unit_number(i);
      if (here < 0) continue;
      const int needed = level_needed(g, f, i, here);
      if (needed <= f.at(here).level) continue;
      f.units[static_cast<std::size_t>(here)].level = needed;
      again = true;
    }
  }
}

/// Whether node `id` can run within a unit without a ring of units that wait for each other: what it reads has lower
/// levels than the unit, or the unit's level may still rise. A read of the unit's own result through a view needs
/// memory.
constexpr bool can_join(const graph::graph& g, const fusion& f, int id, int number) {
  const graph::node& n = g.at(id);
  const int operands = n.operand_count();
  for (int k = 0; k < operands; ++k) {
    const int operand = n.operands[k];
    if (f.unit_number(operand) != number && f.unit_number(awaited_node(g, operand)) == number) return false;
  }
  return !f.at(number).awaited || level_needed(g, f, id, number) <= f.at(number).level || may_rise(g, f, id, number);
}

/// The unit for elementwise node `id`: one that computes or reads an operand, the latest first, or else the newest
/// unit; -1 if it can join none of them.
constexpr int unit_to_join(const graph::graph& g, const fusion& f, int id, const graph::list<int>& last_reader) {
  int candidates[7];
  int count = 0;
  const auto add = [&](int number) {
    for (int c = 0; c < count; ++c)
      if (candidates[c] == number) return;
    if (number < 0 || !fits_into(g, f, id, number)) return;
    int place = count++;
    for (; place > 0 && candidates[place - 1] < number; --place) candidates[place] = candidates[place - 1];
    candidates[place] = number;
  };
  const graph::node& n = g.at(id);
  const int operands = n.operand_count();
  for (int k = 0; k < operands; ++k) {
    const int awaited = awaited_node(g, n.operands[k]);
    add(f.unit_number(awaited));
    add(last_reader[static_cast<std::size_t>(awaited)]);
  }
  add(static_cast<int>(f.units.size()) - 1);
  for (int c = 0; c < count; ++c)
    if (can_join(g, f, id, candidates[c])) return candidates[c];
  return -1;
}

/// Adds node `id` to unit `number` and counts what it reads.
constexpr void join(const graph::graph& g, fusion& f, int id, int number, graph::list<int>& last_reader) {
  const graph::node& n = g.at(id);
  const int level = level_needed(g, f, id, number);
  f.add(number, id);
  unit& u = f.units[static_cast<std::size_t>(number)];
  if (level > u.level) {
    if (u.awaited) raise(g, f, number, level);
    else u.level = level;
  }
  u.lanes = u.nodes == 1 ? lanes_of(g, id) : join_lanes(u.lanes, lanes_of(g, id));
  graph::for_each_read(g, id, [&](int operand) {
    const int awaited = awaited_node(g, operand);
    if (f.unit_number(operand) != number) ++f.units[static_cast<std::size_t>(number)].sources;
    if (const int other = f.unit_number(awaited); other >= 0 && other != number)
      f.units[static_cast<std::size_t>(other)].awaited = true;
    if (is(n.code, graph::op_kind::elementwise) && g.type(awaited).rank > 0)
      last_reader[static_cast<std::size_t>(awaited)] = number;
  });
}

/// Assigns every node to a unit, in one pass. All-reduces of one group stand side by side (see combine_all_reduces).
constexpr fusion fuse(const graph::graph& g) {
  fusion f;
  f.unit_of.resize(g.nodes.size(), -1);
  f.next.resize(g.nodes.size(), -1);
  graph::list<int> last_reader(g.nodes.size(), -1);
  for (int i = 0; i < g.size(); ++i) {
    const graph::node& n = g.at(i);
    if (runs_nowhere(n.code)) continue;
    int number = is(n.code, graph::op_kind::elementwise) ? unit_to_join(g, f, i, last_reader) : -1;
    const bool grouped = n.code == op::all_reduce && n.attribute[3] != 0 && i > 0 &&
                         g.at(i - 1).code == op::all_reduce && g.at(i - 1).attribute[3] == n.attribute[3];
    if (grouped) number = f.unit_number(i - 1);
    if (is(n.code, graph::op_kind::result)) number = f.unit_number(n.operands[0]);
    join(g, f, i, number >= 0 ? number : static_cast<int>(f.units.size()), last_reader);
  }
  return f;
}

}  // namespace tessera::transform
