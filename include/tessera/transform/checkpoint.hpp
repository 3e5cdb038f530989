// SPDX-License-Identifier: Apache-2.0
// Regions whose values are computed again for the gradient instead of being kept.
#pragma once

#include <tessera/ops/control.hpp>
#include <tessera/transform/grad.hpp>
#include <tessera/transform/policies.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace tessera {

namespace ops {

template <text Name>
inline constexpr auto name_rule = [](std::span<const aval> x, const mesh_value&) {
  static_assert(Name.length > 0 && Name.length <= graph::max_value_name, "a name has 1 to 31 characters");
  return ruling{x[0]};
};

/// The graph of the first traced thing among the arguments or, failing that, in the function.
template <class... Args>
constexpr graph::graph* owner_of_trees(const Args&... args) {
  graph::graph* found = nullptr;
  ((found = found == nullptr ? owner_of_tree(args) : found), ...);
  return found;
}

/// How a function is kept: a module that has a name where it is, as its variables may be changed; others by value.
template <class F>
using called =
    std::conditional_t<std::is_lvalue_reference_v<F> && Walked<std::remove_reference_t<F>>, F, std::decay_t<F>>;

/// Whether a value of the body has the name.
constexpr bool carries(const graph::graph& body, std::string_view name) {
  for (const graph::node& n : body.nodes)
    if (n.code == graph::op::name && graph::value_name(n.attribute).view() == name) return true;
  for (const graph::graph& inner : body.bodies)
    if (carries(inner, name)) return true;
  return false;
}

/// Notes the first name of a policy that no value of the body carries: what is made of it is said once the step is
/// lowered.
template <auto Policy>
constexpr void note_missing_names(graph::graph& trace, const graph::graph& body) {
  for (std::string_view name : names_of<Policy>::list) {
    if (carries(body, name)) continue;
    if constexpr (names_of<Policy>::when_missing == missing_name::is_error) {
      graph::trace_fault fault{message::policy_name};
      graph::set_name(fault.name, name);
      return trace.report(fault);
    } else if constexpr (names_of<Policy>::when_missing == missing_name::is_warning) {
      return trace.note_missing_name(name);
    }
  }
}

template <class F, auto Policy>
struct checkpointed {
  F function;

  template <class... Args>
  constexpr auto operator()(Args&&... args) const {
    using result = std::remove_cvref_t<decltype(function(args...))>;
    using M = typename mesh_of_tree<result>::type;
    if constexpr (has_poison<result>) {
      return poison{};
    } else {
      graph::graph* owner = owner_of_trees(args...);
      if (owner == nullptr) throw value_error("tessera: checkpoint: no argument is traced; pass at least one array");
      graph::graph& here = owner->active();
      std::tuple watched{watch(args)...};
      watch called(function);
      open_body traced(here);
      const auto made = function(args...);
      traced.put_out(made);
      const auto results = static_cast<int>(traced.body.outputs.size());
      traced.settle();
      traced.put_out_changes();
      traced.close();
      called.end();
      std::apply([](auto&... each) { (each.end(), ...); }, watched);
      const graph::list<open_body::change> changes = traced.changes;
      const graph::control c{graph::control_kind::call};
      open_body* const bodies[] = {&traced};
      const auto body = static_cast<int>(here.bodies.size());
      const int node = finish(here, c, {}, bodies);
      here.at(node).policy = &keeps<Policy>;
      hand_on(changes, here, c, node, body, results);
      if constexpr (GoesByNames<Policy>)
        note_missing_names<Policy>(here.outermost(), here.bodies[static_cast<std::size_t>(body)]);
      return results_of(shaped_like<body_form<result, M>>(made), here, c, node, body, 0);
    }
  }
};

}  // namespace ops

/// `checkpoint_name(x, ...)` as `checkpoint_name<"mlp_hidden">(x)`: x itself, under a name that policies see. Only what
/// uses the returned value depends on the name. Source: jax.ad_checkpoint.checkpoint_name.
template <text Name>
constexpr auto checkpoint_name(const ArrayLike auto& x, call_site where = call_site::current()) {
  constexpr auto write = [](const std::array<graph::value, 1>& v, const aval& type) {
    const graph::value named = graph::write(v[0].owner, graph::op::name, type, {v[0].id});
    graph::set_name(named.owner->at(named.id).attribute, Name.view());
    return named;
  };
  return ops::apply<"checkpoint_name", ops::name_rule<Name>>(ops::written_at{where, write}, x);
}

/// `checkpoint<dots_saveable>(f)`: a function that computes what f computes; for its gradient f is run again, but for
/// the values that the policy lets be kept (none unless told). Arguments of f and arrays it captures are always at
/// hand. Values and gradients have the same bits with and without it. The two runs are never merged into one
/// (`prevent_cse` of jax.checkpoint, always true: each is a body of its own, inside loops too). Checkpoints nest: the
/// outer policy says what is kept between forward and backward, inner ones what is kept while the outer region is run
/// again. f may be a module. Variables that f changes are changed once, by the first run. Source: jax.checkpoint,
/// nnx.remat.
template <auto Policy = nothing_saveable, class F>
constexpr auto checkpoint(F&& f) {
  return ops::checkpointed<ops::called<F>, Policy>{std::forward<F>(f)};
}
template <auto Policy = nothing_saveable, class F>
constexpr auto remat(F&& f) {
  return ops::checkpointed<ops::called<F>, Policy>{std::forward<F>(f)};
}

}  // namespace tessera
