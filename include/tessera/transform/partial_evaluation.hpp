// SPDX-License-Identifier: Apache-2.0
// What the forward part of a body hands to its backward part: policies are asked, what is cheap to make again is not
// kept.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/worklist.hpp>
#include <tessera/transform/cheap.hpp>
#include <tessera/transform/host_moves.hpp>

#include <algorithm>
#include <span>

namespace tessera::transform {

/// The policies of the checkpointed regions around a value, outermost first.
using policies = std::span<const graph::policy_function>;

/// A value as a policy sees it, with room for its name.
struct described {
  graph::residual value{};
  graph::value_name name{};
  const graph::graph* maker = nullptr;  ///< the graph or body whose node makes it,
  int node = -1;                        ///< and that node

  /// A value has the name that checkpoint_name gives it, whichever of the two the gradient uses; the result of a
  /// control node is what its body made.
  constexpr void look_at(const graph::graph& g, int id) {
    for (int user = id; name.size == 0 && user < g.size(); ++user)
      if (g.at(user).code == op::name && (user == id || g.at(user).operands[0] == id))
        name = graph::value_name(g.at(user).attribute);
    const graph::node& n = g.at(id);
    if (n.code == op::name || is(n.code, graph::op_kind::transfer)) return look_at(g, n.operands[0]);
    if (n.code == op::result) {
      const graph::control c = graph::control_of(g.at(n.operands[0]));
      const graph::graph& body = g.bodies[static_cast<std::size_t>(c.body + c.bodies() - 1)];
      return look_at(body, body.outputs[static_cast<std::size_t>(n.attribute[0])].node);
    }
    value = {n.code, n.type, n.code == op::dot && n.attribute[2] != 0};
    maker = &g;
    node = id;
  }
};

constexpr graph::keep ask(graph::policy_function policy, const graph::graph& g, int id) {
  described about_it;
  about_it.look_at(g, id);
  about_it.value.name = about_it.name.view();
  return policy(about_it.value);
}

/// The first answer of the policies, the outermost first, other than to compute the value again.
constexpr graph::keep what_becomes_of(const graph::graph& g, int id, policies around) {
  for (graph::policy_function policy : around)
    if (const graph::keep answer = ask(policy, g, id); answer != graph::keep::recompute) return answer;
  return graph::keep::recompute;
}

/// Which of the values `saved` are handed over through host memory and are not there yet.
constexpr graph::list<char> offloaded(const graph::graph& g, const graph::list<int>& saved, policies around) {
  graph::list<char> moved;
  for (int id : saved)
    moved.push_back(!lies_on_host(g, id) && what_becomes_of(g, id, around) == graph::keep::offload ? 1 : 0);
  return moved;
}

/// Divides a body with its transpose behind it into what the forward part can compute and what needs cotangents, and
/// chooses the values that the former hands to the latter.
struct partial_evaluation {
  const graph::graph& joint;
  policies allowed;  ///< none: everything may be kept
  graph::list<char> known{};
  graph::list<char> available{};
  graph::list<char> easy{};

  /// `unknown`: parameters that stand for cotangents; `at_hand`: parameters that the backward part has anyway.
  constexpr partial_evaluation(const graph::graph& body, policies those, const graph::list<int>& unknown,
                               const graph::list<int>& at_hand)
      : joint(body),
        allowed(those),
        known(body.nodes.size(), 1),
        available(body.nodes.size(), 0),
        easy(body.nodes.size(), 0) {
    for (int p : unknown) known[static_cast<std::size_t>(p)] = 0;
    for (int p : at_hand) available[static_cast<std::size_t>(p)] = 1;
    for (int i = 0; i < joint.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      bool all_easy = true;
      for (int k = 0; k < joint.at(i).operand_count(); ++k) {
        const auto operand = static_cast<std::size_t>(joint.at(i).operands[k]);
        known[at] = known[at] && known[operand];
        all_easy &= easy[operand] != 0;
      }
      easy[at] = available[at] || (made_again(i) ? all_easy : may_keep(i));
    }
  }

  /// Whether a node may be computed once more where what it reads is at hand; products only if no policy asks for them.
  constexpr bool made_again(int id) const {
    if (is_cheap(joint.at(id).code)) return true;
    return is_light(joint, id) && (allowed.empty() || !may_keep(id));
  }

  constexpr bool may_keep(int id) const {
    return allowed.empty() || joint.at(id).code == op::parameter ||
           what_becomes_of(joint, id, allowed) != graph::keep::recompute;
  }

  /// Whether a policy offloads, under a name of its own, what is at hand on the device, so that the device need not
  /// keep it: an argument that a function calls by a name.
  constexpr bool renamed_on_host(int id) const {
    return joint.at(id).code == op::name && available[static_cast<std::size_t>(joint.at(id).operands[0])] &&
           what_becomes_of(joint, id, allowed) == graph::keep::offload;
  }

  /// Known values for `outputs`: those that may be kept, are not cheap to compute from others that are, nor from what
  /// the backward part computes again anyway.
  constexpr graph::list<int> saved_for(const graph::list<int>& outputs) const {
    graph::list<int> saved;
    graph::worklist unvisited(available);
    for (int o : outputs) unvisited.push(o);
    while (!unvisited.empty()) {
      const int node = unvisited.pop();
      const auto at = static_cast<std::size_t>(node);
      const op code = joint.at(node).code;
      const bool storable = !is(code, graph::op_kind::list) && code != op::control && code != op::name;
      const bool kept = !(made_again(node) && easy[at]) && storable && may_keep(node);
      if (known[at] && (kept || renamed_on_host(node))) saved.push_back(node);
      else
        for (int k = 0; k < joint.at(node).operand_count(); ++k) unvisited.push(joint.at(node).operands[k]);
    }
    return without_remade(saved, unvisited.seen);
  }

  /// The saved values without those that are cheap to compute from the others and from what is computed again, all of
  /// which is among `seen`.
  constexpr graph::list<int> without_remade(const graph::list<int>& saved, const graph::list<char>& seen) const {
    graph::list<char> present = available;
    graph::list<int> needed;
    for (int i = 0; i < joint.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!known[at] || present[at]) continue;
      bool all_present = is_cheap(joint.at(i).code);
      for (int k = 0; all_present && k < joint.at(i).operand_count(); ++k)
        all_present = present[static_cast<std::size_t>(joint.at(i).operands[k])] != 0;
      const bool is_saved = std::find(saved.begin(), saved.end(), i) != saved.end();
      if (is_saved && (!all_present || renamed_on_host(i))) needed.push_back(i);
      present[at] = is_saved || all_present || (seen[at] && !is_cheap(joint.at(i).code));
    }
    return needed;
  }
};

}  // namespace tessera::transform
