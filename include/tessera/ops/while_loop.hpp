// SPDX-License-Identifier: Apache-2.0
// A loop that runs as long as a condition holds, traced once.
#pragma once

#include <tessera/ops/open_body.hpp>

namespace tessera {

namespace ops {

/// A while loop over mesh M.
template <class M, class Condition, class F, class Init>
constexpr auto while_over(Condition condition, F f, const Init& init) {
  using carry = body_form<Init, M>;
  using choice = std::remove_cvref_t<decltype(condition(std::declval<carry>()))>;
  using made = std::remove_cvref_t<decltype(f(std::declval<carry>()))>;
  using joined = typename join_meshes<M, typename mesh_of_tree<made>::type>::type;
  if constexpr (has_poison<made> || Poison<choice>) {
    return poison{};
  } else if constexpr (!std::same_as<joined, M>) {
    return while_over<joined>(condition, f, init);
  } else if constexpr (!is_condition<choice>()) {
    diagnose(report<message::while_condition, [] {
      text_buffer out;
      write_leaves<choice, M>(out);
      return out;
    }>);
    return poison{};
  } else if constexpr (!std::same_as<body_form<made, M>, carry>) {
    diagnose(report<message::scan_carry, [] { return change_details<"carry", carry, made, M>(); }>);
    return poison{};
  } else {
    graph::graph& here = owner_of_tree(init)->active();
    const auto trace = [&](open_body& traced, const graph::list<open_body::change>& state, const auto& function) {
      carry carried = traced.template bind<carry, M>(shaped_like<carry>(init));
      traced.carry(state);
      const auto out = function(std::move(carried));
      traced.settle();
      traced.put_out(out);
    };
    open_body trial(here);
    trace(trial, {}, f);
    trial.close();
    open_body asked(here);
    trace(asked, trial.changes, condition);
    if (asked.changes.size() != trial.changes.size()) here.outermost().report({message::while_state, -1, {}});
    asked.close();
    open_body traced(here);
    trace(traced, trial.changes, f);
    traced.put_out_changes();
    traced.close();
    graph::list<int> arguments;
    append_nodes(init, here, arguments);
    const auto carries = static_cast<int>(arguments.size());
    for (const open_body::change& c : traced.changes) arguments.push_back(here.import_node(c.owner, c.before));
    const graph::control c{graph::control_kind::while_loop, 0, 1, static_cast<int>(arguments.size())};
    open_body* const bodies[] = {&asked, &traced};
    const graph::list<open_body::change> changes = traced.changes;
    const auto body = static_cast<int>(here.bodies.size());
    const int node = finish(here, c, arguments, bodies);
    hand_on(changes, here, c, node, body + 1, carries);
    return results_of(shaped_like<carry>(init), here, c, node, body + 1, 0);
  }
}

}  // namespace ops

/// `while_loop(condition, f, init)`: carry = f(carry) as long as condition(carry), a bool scalar, is true. It has no
/// gradient. Source: jax.lax.while_loop.
template <class Condition, class F, class Init>
constexpr auto while_loop(Condition condition, F f, const Init& init) {
  if constexpr (ops::has_poison<Init>) {
    return poison{};
  } else if constexpr (!ops::has_array<Init>) {
    diagnose(report<message::scan_nothing, no_details<Init>>);
    return poison{};
  } else {
    return ops::while_over<typename ops::mesh_of_tree<Init>::type>(condition, f, init);
  }
}

}  // namespace tessera
