// SPDX-License-Identifier: Apache-2.0
// Regions whose values are computed again for the gradient instead of being kept, and policies that say which are kept.
#pragma once

#include <tessera/ops/control.hpp>
#include <tessera/transform/grad.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace tessera {

using graph::keep;
using graph::residual;

/// Policies: each takes a `residual` (operation, type, name) and says whether it may be kept. What is kept is what may be
/// kept, is used by the gradient, and is not elementwise in other kept values: a policy permits, it does not oblige. A
/// policy of one's own is any captureless function of this kind. Source: jax.checkpoint_policies.
inline constexpr auto everything_saveable = [](const residual&) { return true; };
inline constexpr auto nothing_saveable = [](const residual&) { return false; };
inline constexpr auto dots_saveable = [](const residual& value) { return value.code == graph::op::dot; };
inline constexpr auto dots_with_no_batch_dims_saveable = [](const residual& value) {
  return value.code == graph::op::dot && !value.batched;
};
inline constexpr auto checkpoint_dots = dots_saveable;
inline constexpr auto checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable;

/// Products without batch dimensions wait in host memory.
inline constexpr auto offload_dot_with_no_batch_dims = [](const residual& value) {
  return dots_with_no_batch_dims_saveable(value) ? keep::offload : keep::recompute;
};

/// Names of values: of one, whether it carries one of them.
template <text... Names>
struct names {
  static constexpr bool of(const residual& value) { return (false || ... || (value.name == Names.view())); }
};

/// Values named so, and no others.
template <text... Names>
inline constexpr auto save_only_these_names = [](const residual& value) { return names<Names...>::of(value); };
/// Named values with other names than these, and no unnamed ones.
template <text... Names>
inline constexpr auto save_any_names_but_these =
    [](const residual& value) { return !value.name.empty() && !names<Names...>::of(value); };
/// All values but those with these names.
template <text... Names>
inline constexpr auto save_anything_except_these_names =
    [](const residual& value) { return !names<Names...>::of(value); };
/// `save_and_offload_only_these_names<names<"scores">, names<"hidden">>`: the former stay on the device, the latter wait in
/// host memory, all else is computed again.
template <class Saved, class Offloaded>
inline constexpr auto save_and_offload_only_these_names = [](const residual& value) {
  return Saved::of(value) ? keep::save : Offloaded::of(value) ? keep::offload : keep::recompute;
};

namespace ops {

/// A policy as nodes hold it.
template <auto Policy>
constexpr keep keeps(const residual& value) {
  if constexpr (std::same_as<decltype(Policy(value)), bool>) return Policy(value) ? keep::save : keep::recompute;
  else return Policy(value);
}

}  // namespace ops

/// What the first of the two lets be saved or offloaded or, failing that, the second.
template <auto First, auto Second>
inline constexpr auto save_from_both_policies = [](const residual& value) {
  const keep answer = ops::keeps<First>(value);
  return answer != keep::recompute ? answer : ops::keeps<Second>(value);
};

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
      return results_of(shaped_like<body_form<result, M>>(made), here, c, node, body, 0);
    }
  }
};

}  // namespace ops

/// `checkpoint_name(x, ...)` as `checkpoint_name<"mlp_hidden">(x)`: x itself, under a name that policies see. Only what
/// uses the returned value depends on the name. Source: jax.ad_checkpoint.checkpoint_name.
template <text Name>
constexpr auto checkpoint_name(const ArrayLike auto& x) {
  return ops::apply<"checkpoint_name", ops::name_rule<Name>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        const graph::value named = graph::write(v[0].owner, graph::op::name, type, {v[0].id});
        graph::set_name(named.owner->at(named.id), Name.view());
        return named;
      },
      x);
}

/// `checkpoint<dots_saveable>(f)`: a function that computes what f computes; for its gradient f is run again, but for the
/// values that the policy lets be kept (none unless told). Arguments of f and arrays it captures are always at hand.
/// Values and gradients have the same bits with and without it. The two runs are never merged into one (`prevent_cse`
/// of jax.checkpoint, always true: each is a body of its own, inside loops too). Checkpoints nest: the outer policy says
/// what is kept between forward and backward, inner ones what is kept while the outer region is run again. f may be a
/// module. Variables that f changes are changed once, by the first run. Source: jax.checkpoint, nnx.remat.
template <auto Policy = nothing_saveable, class F>
constexpr auto checkpoint(F&& f) {
  return ops::checkpointed<ops::called<F>, Policy>{std::forward<F>(f)};
}
template <auto Policy = nothing_saveable, class F>
constexpr auto remat(F&& f) {
  return ops::checkpointed<ops::called<F>, Policy>{std::forward<F>(f)};
}

}  // namespace tessera
