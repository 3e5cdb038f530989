// SPDX-License-Identifier: Apache-2.0
// A branch whose two sides are traced once and of which one runs.
#pragma once

#include <tessera/ops/open_body.hpp>

namespace tessera {

namespace ops {

/// The variables that one of two closed branches changed; both put out what they stand for in the end.
constexpr graph::list<open_body::change> changes_of_either(graph::graph& here, open_body& yes, open_body& no) {
  graph::list<open_body::change> changes = yes.changes;
  for (const open_body::change& c : no.changes) {
    bool known = false;
    for (const open_body::change& other : yes.changes) known |= other.variable == c.variable;
    if (!known) changes.push_back(c);
  }
  for (const open_body::change& c : changes) {
    yes.body.outputs.push_back({yes.last(here, c), -1});
    no.body.outputs.push_back({no.last(here, c), -1});
  }
  return changes;
}

/// A branch over mesh M.
template <class M, class Predicate, class OnTrue, class OnFalse, class... Operands>
constexpr auto branch_over(const Predicate& predicate, OnTrue on_true, OnFalse on_false, const Operands&... operands) {
  using first = std::remove_cvref_t<decltype(on_true(operands...))>;
  using second = std::remove_cvref_t<decltype(on_false(operands...))>;
  using joined = typename join_meshes<M, typename mesh_of_tree<first>::type, typename mesh_of_tree<second>::type>::type;
  if constexpr (has_poison<first> || has_poison<second>) {
    return poison{};
  } else if constexpr (!std::same_as<joined, M>) {
    return branch_over<joined>(predicate, on_true, on_false, operands...);
  } else if constexpr (!std::same_as<body_form<first, M>, body_form<second, M>>) {
    diagnose(report<message::cond_results, [] { return change_details<"result", first, second, M>(); }>);
    return poison{};
  } else {
    graph::graph& here = predicate.handle.owner->active();
    const graph::list<int> arguments{operand_value(&here, predicate, dtype::bool_).id};
    const auto trace = [&](open_body& traced, const auto& f) {
      auto result = f(operands...);
      traced.put_out(result);
      traced.close();
      return shaped_like<body_form<first, M>>(result);
    };
    open_body yes(here);
    const auto form = trace(yes, on_true);
    open_body no(here);
    trace(no, on_false);
    const graph::list<open_body::change> changes = changes_of_either(here, yes, no);
    const graph::control c{graph::control_kind::branch};
    open_body* const bodies[] = {&yes, &no};
    const auto body = static_cast<int>(here.bodies.size());
    const auto results = static_cast<int>(yes.body.outputs.size() - changes.size());
    const int node = finish(here, c, arguments, bodies);
    hand_on(changes, here, c, node, body, results);
    return results_of(form, here, c, node, body, 0);
  }
}

}  // namespace ops

/// `cond(predicate, on_true, on_false, operands...)`: what on_true(operands...) gives if the predicate, a bool scalar,
/// is true, else what on_false gives; only that one runs. Both give arrays, or trees of them, of the same types.
/// Gradient: a branch that computes its values again. Source: jax.lax.cond.
template <class Predicate, class OnTrue, class OnFalse, class... Operands>
constexpr auto cond(const Predicate& predicate, OnTrue on_true, OnFalse on_false, const Operands&... operands) {
  if constexpr (Poison<Predicate> || (Poison<Operands> || ...)) {
    return poison{};
  } else if constexpr (!Expr<Predicate> || !ops::is_condition<Predicate>()) {
    diagnose(report<message::cond_predicate, [] {
      text_buffer out;
      ops::write_leaves<Predicate, typename ops::mesh_of_tree<Predicate>::type>(out);
      return out;
    }>);
    return poison{};
  } else {
    using M = typename join_meshes<typename ops::mesh_of<Predicate>::type,
                                   typename ops::mesh_of_tree<Operands>::type...>::type;
    return ops::branch_over<M>(predicate, on_true, on_false, operands...);
  }
}

}  // namespace tessera
