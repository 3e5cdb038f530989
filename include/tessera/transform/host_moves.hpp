// SPDX-License-Identifier: Apache-2.0
// Values that wait in host memory between two parts of a program.
#pragma once

#include <tessera/graph/control.hpp>

namespace tessera::transform {

using graph::op;

/// Whether node `id` is made in host memory: by a move, or by the body of a control node that ends with one.
constexpr bool lies_on_host(const graph::graph& g, int id) {
  const graph::graph* here = &g;
  while (here->at(id).code == op::result) {
    const graph::node& n = here->at(id);
    const graph::control c = graph::control_of(here->at(n.operands[0]));
    const bool hands_over = c.kind == graph::control_kind::scan || c.kind == graph::control_kind::call;
    if (!hands_over || static_cast<int>(n.attribute[0]) < c.carries) return false;
    here = &here->bodies[static_cast<std::size_t>(c.body)];
    id = here->outputs[static_cast<std::size_t>(n.attribute[0])].node;
  }
  return here->at(id).code == op::to_host;
}

/// `body` with a move right behind each node that `moved` marks. `to_host`: the outputs from number `first` on are what
/// was moved; `from_host`: everyone reads what was moved.
constexpr graph::graph with_moves(const graph::graph& body, op move, const graph::list<char>& moved,
                                  std::size_t first = 0) {
  graph::graph result;
  result.mesh = body.mesh;
  result.bodies = body.bodies;
  graph::list<int> place(body.nodes.size(), -1);
  graph::list<int> away(body.nodes.size(), -1);
  for (int i = 0; i < body.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    graph::node n = body.at(i);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    place[at] = result.add(n);
    if (n.code == op::parameter) result.parameters.push_back(place[at]);
    if (!moved[at]) continue;
    graph::node there;
    there.code = move;
    there.type = n.type;
    there.operands[0] = place[at];
    away[at] = result.add(there);
    if (move == op::from_host) place[at] = away[at];
  }
  for (std::size_t o = 0; o < body.outputs.size(); ++o) {
    const auto node = static_cast<std::size_t>(body.outputs[o].node);
    const bool sent = move == op::to_host && o >= first && moved[node];
    result.outputs.push_back({sent ? away[node] : place[node], body.outputs[o].alias});
  }
  return result;
}

/// A body that hands over its outputs from number `first` on, those that `by_host` marks through host memory: they
/// leave as soon as they are made.
constexpr graph::graph send_to_host(const graph::graph& body, std::size_t first, const graph::list<char>& by_host) {
  graph::list<char> moved(body.nodes.size(), 0);
  bool any = false;
  for (std::size_t o = 0; o < by_host.size(); ++o)
    if (by_host[o]) moved[static_cast<std::size_t>(body.outputs[first + o].node)] = 1, any = true;
  if (!any) return body;
  return with_moves(body, op::to_host, moved, first);
}

/// The body that gets them as its parameters from number `first` on.
constexpr graph::graph fetch_from_host(const graph::graph& body, std::size_t first, const graph::list<char>& by_host) {
  graph::list<char> moved(body.nodes.size(), 0);
  bool any = false;
  for (std::size_t p = 0; p < by_host.size(); ++p)
    if (by_host[p]) moved[static_cast<std::size_t>(body.parameters[first + p])] = 1, any = true;
  if (!any) return body;
  return with_moves(body, op::from_host, moved);
}

}  // namespace tessera::transform
