// SPDX-License-Identifier: Apache-2.0
// Taking graphs apart and putting them together: bodies of control nodes in and out of other graphs, without what
// nobody asks of them.
#pragma once

#include <tessera/graph/control.hpp>

namespace tessera::transform {

using graph::op;

/// Whether a graph, or one of its bodies, checks something.
constexpr bool checks_something(const graph::graph& g) {
  for (const graph::node& n : g.nodes)
    if (is(n.code, graph::op_kind::check)) return true;
  for (const graph::graph& body : g.bodies)
    if (checks_something(body)) return true;
  return false;
}

/// Whether a body of control node `n` checks something.
constexpr bool checks_inside(const graph::graph& g, const graph::node& n) {
  if (n.code != op::control) return false;
  const graph::control c = graph::control_of(n);
  if (c.kind == graph::control_kind::custom_gradient) return false;
  for (int b = 0; b < c.bodies(); ++b)
    if (checks_something(g.bodies[static_cast<std::size_t>(c.body + b)])) return true;
  return false;
}

/// Copies the bodies of a control node from `from` and makes the node name the copies.
constexpr void take_bodies(const graph::graph& from, graph::graph& to, graph::node& n) {
  const graph::control c = graph::control_of(n);
  n.attribute[0] = to.bodies.size();
  for (int b = 0; b < c.bodies(); ++b) to.bodies.push_back(from.bodies[static_cast<std::size_t>(c.body + b)]);
}

/// Copies the nodes of `from` into `into`, its parameters being the nodes `parameters` there; returns where each went.
constexpr graph::list<int> embed(graph::graph& into, const graph::graph& from, const graph::list<int>& parameters) {
  graph::list<int> place(from.nodes.size(), -1);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    place[static_cast<std::size_t>(from.parameters[p])] = parameters[p];
  for (int i = 0; i < from.size(); ++i) {
    graph::node n = from.at(i);
    if (n.code == op::parameter) continue;
    if (n.code == op::control) take_bodies(from, into, n);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    place[static_cast<std::size_t>(i)] = into.add(n);
  }
  return place;
}

/// What happens to checks of values when part of a graph is taken out: they are run again, or were run before.
enum class checks : std::uint8_t { keep, drop };

/// The graph that computes nodes `outputs` from nodes `parameters`, whatever made those.
constexpr graph::graph extract(const graph::graph& from, const graph::list<int>& parameters,
                               const graph::list<int>& outputs, checks what) {
  graph::list<char> used(from.nodes.size(), 0);
  for (int o : outputs) used[static_cast<std::size_t>(o)] = 1;
  graph::list<int> place(from.nodes.size(), -1);
  graph::graph result;
  result.mesh = from.mesh;
  for (int p : parameters)
    if (place[static_cast<std::size_t>(p)] < 0) place[static_cast<std::size_t>(p)] = result.add_parameter(from.type(p));
    else result.add_parameter(from.type(p));
  for (int i = from.size() - 1; i >= 0; --i) {
    if (place[static_cast<std::size_t>(i)] >= 0) continue;
    if (what == checks::keep && is(from.at(i).code, graph::op_kind::check)) used[static_cast<std::size_t>(i)] = 1;
    if (!used[static_cast<std::size_t>(i)]) continue;
    for (int k = 0; k < from.at(i).operand_count(); ++k) used[static_cast<std::size_t>(from.at(i).operands[k])] = 1;
  }
  for (int i = 0; i < from.size(); ++i) {
    if (!used[static_cast<std::size_t>(i)] || place[static_cast<std::size_t>(i)] >= 0) continue;
    graph::node n = from.at(i);
    if (n.code == op::control) take_bodies(from, result, n);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    const bool dropped = what == checks::drop && is(n.code, graph::op_kind::check);
    place[static_cast<std::size_t>(i)] = dropped ? n.operands[0] : result.add(n);
  }
  for (int o : outputs) result.outputs.push_back({place[static_cast<std::size_t>(o)], -1});
  return result;
}

/// Which results of a control node and which of its arguments (but the predicate) matter.
struct control_needs {
  graph::list<char> results{};
  graph::list<char> arguments{};
};

/// Marks the parameters of `body` that its outputs in `live`, or its checks, depend on.
constexpr void mark_parameters(const graph::graph& body, const graph::list<char>& live, graph::list<char>& arguments) {
  graph::list<char> used(body.nodes.size(), 0);
  for (std::size_t o = 0; o < live.size(); ++o)
    if (live[o]) used[static_cast<std::size_t>(body.outputs[o].node)] = 1;
  for (int i = body.size() - 1; i >= 0; --i) {
    if (is(body.at(i).code, graph::op_kind::check) || checks_inside(body, body.at(i)))
      used[static_cast<std::size_t>(i)] = 1;
    if (!used[static_cast<std::size_t>(i)]) continue;
    for (int k = 0; k < body.at(i).operand_count(); ++k) used[static_cast<std::size_t>(body.at(i).operands[k])] = 1;
  }
  for (std::size_t p = 0; p < arguments.size(); ++p)
    if (used[static_cast<std::size_t>(body.parameters[p + 1])]) arguments[p] = 1;
}

/// A carry matters if its last value does, or if what matters is made of it, in whatever trip. `live` marks the results
/// that someone uses.
constexpr control_needs needs_of_control(const graph::graph& g, int id, const graph::list<char>& live) {
  const graph::control c = graph::control_of(g.at(id));
  const graph::graph& last = g.bodies[static_cast<std::size_t>(c.body + c.bodies() - 1)];
  control_needs needs{graph::list<char>(last.outputs.size(), 0), graph::list<char>(last.parameters.size() - 1, 0)};
  for (int i = id + 1; i < g.size(); ++i)
    if (live[static_cast<std::size_t>(i)] && g.at(i).code == op::result && g.at(i).operands[0] == id)
      needs.results[static_cast<std::size_t>(g.at(i).attribute[0])] = 1;
  const bool asks = c.kind == graph::control_kind::while_loop;
  if (asks) mark_parameters(g.bodies[static_cast<std::size_t>(c.body)], graph::list<char>(1, 1), needs.arguments);
  for (bool changed = true; changed;) {
    changed = false;
    for (int b = asks ? 1 : 0; b < c.bodies(); ++b)
      mark_parameters(g.bodies[static_cast<std::size_t>(c.body + b)], needs.results, needs.arguments);
    for (int j = 0; j < c.carries; ++j) {
      const auto at = static_cast<std::size_t>(j);
      changed |= needs.arguments[at] != needs.results[at];
      needs.arguments[at] = needs.results[at] = needs.arguments[at] | needs.results[at];
    }
  }
  return needs;
}

/// Writes control node `id` of `from` into `to` without what does not matter; `place` says where nodes went. Returns
/// the node.
constexpr int write_pruned(const graph::graph& from, graph::graph& to, int id, const control_needs& needs,
                           const graph::list<int>& place) {
  graph::control c = graph::control_of(from.at(id));
  const graph::list<int> arguments = graph::arguments_of(from, id);
  graph::list<int> kept;
  for (int i = 0; i < c.leading(); ++i)
    kept.push_back(place[static_cast<std::size_t>(arguments[static_cast<std::size_t>(i)])]);
  graph::control pruned = c;
  pruned.body = static_cast<int>(to.bodies.size());
  for (std::size_t i = 0; i < needs.arguments.size(); ++i) {
    if (needs.arguments[i])
      kept.push_back(place[static_cast<std::size_t>(arguments[i + static_cast<std::size_t>(c.leading())])]);
    else if (static_cast<int>(i) < c.carries) --pruned.carries;
    else if (static_cast<int>(i) < c.carries + c.stacked) --pruned.stacked;
  }
  for (int b = 0; b < c.bodies(); ++b) {
    const graph::graph& body = from.bodies[static_cast<std::size_t>(c.body + b)];
    const bool asks = c.kind == graph::control_kind::while_loop && b == 0;
    graph::list<int> parameters{body.parameters[0]};
    for (std::size_t i = 0; i < needs.arguments.size(); ++i)
      if (needs.arguments[i]) parameters.push_back(body.parameters[i + 1]);
    graph::list<int> outputs;
    for (std::size_t o = 0; o < body.outputs.size(); ++o)
      if (asks || needs.results[o]) outputs.push_back(body.outputs[o].node);
    to.bodies.push_back(extract(body, parameters, outputs, checks::keep));
  }
  return graph::add_control(to, pruned, kept);
}

/// What outputs and checks of a graph depend on, where a control node depends on those arguments alone that what is
/// used of it needs.
struct live_nodes {
  graph::list<char> live{};
  graph::list<control_needs> needs{};  ///< by control node

  constexpr explicit live_nodes(const graph::graph& g) : live(g.nodes.size(), 0), needs(g.nodes.size()) {
    const auto mark = [&](int node) { live[static_cast<std::size_t>(node)] = 1; };
    for (const graph::output& out : g.outputs) mark(out.node);
    for (int p : g.parameters) mark(p);
    for (int i = g.size() - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      const graph::node& n = g.at(i);
      if (is(n.code, graph::op_kind::check) || checks_inside(g, n)) live[at] = 1;
      if (!live[at]) continue;
      if (n.code != op::control) {
        graph::for_each_read(g, i, mark);
        continue;
      }
      needs[at] = needs_of_control(g, i, live);
      const graph::list<int> arguments = graph::arguments_of(g, i);
      const auto leading = static_cast<std::size_t>(graph::control_of(n).leading());
      for (std::size_t a = 0; a < arguments.size(); ++a)
        if (a < leading || needs[at].arguments[a - leading]) mark(arguments[a]);
    }
  }
};

/// Control nodes without results that nobody uses, and without arguments that were only for those; nothing that only
/// such arguments used.
constexpr graph::graph prune_control(const graph::graph& g) {
  graph::graph result;
  result.mesh = g.mesh;
  graph::list<int> place(g.nodes.size(), -1);
  const live_nodes used(g);
  for (int i = 0; i < g.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    graph::node n = g.at(i);
    if (!used.live[at]) continue;
    if (n.code == op::control) {
      place[at] = write_pruned(g, result, i, used.needs[at], place);
      continue;
    }
    if (n.code == op::result) {
      const graph::list<char>& kept = used.needs[static_cast<std::size_t>(n.operands[0])].results;
      std::uint64_t number = 0;
      for (std::size_t r = 0; r < n.attribute[0]; ++r) number += kept[r] ? 1U : 0U;
      n.attribute[0] = number;
    }
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    place[at] = result.add(n);
    if (n.code == op::parameter) result.parameters.push_back(result.size() - 1);
  }
  for (const graph::output& out : g.outputs)
    result.outputs.push_back({place[static_cast<std::size_t>(out.node)], out.alias});
  return result;
}

}  // namespace tessera::transform
