// SPDX-License-Identifier: Apache-2.0
// Functions whose gradient the user writes.
#pragma once

#include <tessera/ops/control.hpp>

#include <tuple>

namespace tessera {

namespace ops {

/// The types of the floating-point leaves of a tree.
template <class T, class M>
constexpr graph::list<aval> float_leaf_types() {
  graph::list<aval> floats;
  for (const aval& type : leaf_types<T, M>())
    if (is_floating(type.type)) floats.push_back(type);
  return floats;
}

/// Whether Cotangent may flow to an argument: it has the same floating-point leaves, or is none.
template <class M, class Argument, class Cotangent>
constexpr bool is_cotangent_of() {
  if constexpr (std::same_as<Cotangent, none_t>) return true;
  else return float_leaf_types<Argument, M>() == float_leaf_types<Cotangent, M>();
}

template <class M, class... Arguments, class... Cotangents>
constexpr std::size_t first_wrong_cotangent(std::type_identity<std::tuple<Arguments...>>,
                                            std::type_identity<std::tuple<Cotangents...>>) {
  const bool fits[] = {is_cotangent_of<M, Arguments, Cotangents>()..., false};
  std::size_t first = 0;
  while (fits[first]) ++first;
  return first;
}

template <class T>
struct as_tuple : std::type_identity<std::tuple<>> {
  static constexpr bool is_one = false;
};
template <class... Ts>
struct as_tuple<std::tuple<Ts...>> : std::type_identity<std::tuple<Ts...>> {
  static constexpr bool is_one = true;
};
template <class A, class B>
struct as_tuple<std::pair<A, B>> : std::type_identity<std::tuple<A, B>> {
  static constexpr bool is_one = true;
};

/// Outputs of the backward body for one argument: its cotangents, or a number without meaning for each leaf without one.
template <class Argument, class Cotangent>
constexpr void put_cotangents(open_body& traced, int meaningless, const Argument& argument,
                              const Cotangent& cotangent) {
  graph::list<int> cotangents;
  if constexpr (!std::same_as<Cotangent, none_t>)
    for_each_leaf(cotangent, [&]<class Leaf>(const Leaf& leaf) {
      graph::list<int> one;
      append_nodes(leaf, traced.body, one);
      if (is_floating(traced.body.type(one[0]).type)) cotangents.push_back(one[0]);
    });
  std::size_t next = 0;
  for_each_leaf(argument, [&]<class Leaf>(const Leaf&) {
    bool has_one = false;
    if constexpr (!Number<Leaf>) has_one = is_floating(element_of<Leaf>()) && next < cotangents.size();
    traced.body.outputs.push_back({has_one ? cotangents[next++] : meaningless, -1});
  });
}

template <class F, class Forward, class Backward>
struct custom_vjp_function {
  F function;
  Forward forward;
  Backward backward;

  template <class... Args>
  constexpr auto operator()(Args... args) const {
    using result = std::remove_cvref_t<decltype(function(args...))>;
    if constexpr ((has_poison<Args> || ...) || has_poison<result>) return poison{};
    else if constexpr (!(has_array<Args> || ...)) return function(args...);
    else return with_forward<result>(args...);
  }

 private:
  template <class Result, class... Args>
  constexpr auto with_forward(Args&... args) const {
    using pair = std::remove_cvref_t<decltype(forward(args...))>;
    if constexpr (Poison<pair>) {
      return poison{};
    } else if constexpr (!requires(pair p) { p.first, p.second; }) {
      diagnose(report<message::custom_vjp_forward, no_details<pair>>);
      return poison{};
    } else {
      using made = std::remove_cvref_t<decltype(std::declval<pair>().first)>;
      using kept = std::remove_cvref_t<decltype(std::declval<pair>().second)>;
      using M = typename join_meshes<typename mesh_of_tree<Args>::type..., typename mesh_of_tree<Result>::type,
                                     typename mesh_of_tree<kept>::type>::type;
      if constexpr (has_poison<made> || has_poison<kept>) {
        return poison{};
      } else if constexpr (!std::same_as<body_form<made, M>, body_form<Result, M>>) {
        diagnose(report<message::custom_vjp_result, [] { return change_details<"result", Result, made, M>(); }>);
        return poison{};
      } else {
        return with_backward<Result, kept, M>(args...);
      }
    }
  }

  template <class Result, class Kept, class M, class... Args>
  constexpr auto with_backward(Args&... args) const {
    using residuals = body_form<Kept, M>;
    using cotangents =
        std::remove_cvref_t<decltype(backward(std::declval<residuals&>(), std::declval<body_form<Result, M>&>()))>;
    using list = typename as_tuple<cotangents>::type;
    if constexpr (has_poison<cotangents>) {
      return poison{};
    } else if constexpr (!as_tuple<cotangents>::is_one || std::tuple_size_v<list> != sizeof...(Args)) {
      diagnose(report<message::custom_vjp_count, [] {
        return text_buffer{} << static_cast<int>(sizeof...(Args))
                             << (sizeof...(Args) == 1 ? " argument" : " arguments");
      }>);
      return poison{};
    } else {
      constexpr std::size_t wrong =
          first_wrong_cotangent<M>(std::type_identity<std::tuple<Args...>>{}, std::type_identity<list>{});
      if constexpr (wrong < sizeof...(Args)) {
        diagnose(report<message::custom_vjp_cotangent, [] {
          text_buffer out;
          out << "argument " << static_cast<int>(wrong + 1) << " is ";
          write_leaves<std::tuple_element_t<wrong, std::tuple<Args...>>, M>(out);
          out << ", its cotangent ";
          write_leaves<std::tuple_element_t<wrong, list>, M>(out);
          return out;
        }>);
        return poison{};
      } else {
        return trace<body_form<Result, M>, residuals, M>(args...);
      }
    }
  }

  template <class Result, class Residuals, class M, class... Args>
  constexpr Result trace(Args&... args) const {
    graph::graph* owner = nullptr;
    ((owner = owner == nullptr ? owner_of_tree(args) : owner), ...);
    if (owner == nullptr)
      throw value_error("tessera: a traced operation was called outside jit; call it inside a step function");
    graph::graph& here = owner->active();
    const auto made = function(args...);
    const auto kept = forward(args...).second;
    graph::list<int> arguments;
    (append_nodes(args, here, arguments), ...);
    const auto inputs = static_cast<int>(arguments.size());
    append_nodes(made, here, arguments);
    const int results = static_cast<int>(arguments.size()) - inputs;
    append_nodes(kept, here, arguments);
    graph::control c{graph::control_kind::custom_gradient, 0, static_cast<int>(arguments.size()) - inputs - results,
                     inputs, results};

    open_body traced(here);
    Residuals residuals = traced.template bind<Residuals, M>(shaped_like<Residuals>(kept));
    Result cotangent = traced.template bind<Result, M>(shaped_like<Result>(made));
    const auto back = backward(residuals, cotangent);
    const int meaningless = traced.template trip<M>().handle.id;
    const auto all = std::tie(args...);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (put_cotangents(traced, meaningless, std::get<I>(all), std::get<I>(back)), ...);
    }
    (std::index_sequence_for<Args...>{});
    traced.close();

    graph::list<aval> types;
    for (int r = 0; r < results; ++r) types.push_back(here.type(arguments[static_cast<std::size_t>(inputs + r)]));
    open_body* const bodies[] = {&traced};
    const int node = finish(here, c, arguments, bodies);
    graph::list<int> nodes;
    for (int r = 0; r < results; ++r)
      nodes.push_back(graph::add_result(here, node, r, types[static_cast<std::size_t>(r)]));
    Result form = shaped_like<Result>(made);
    std::size_t next = 0;
    set_nodes(form, here, nodes, next);
    return form;
  }
};

}  // namespace ops

/// `const auto f = custom_vjp(function, fwd, bwd)`: f(args...) gives what function(args...) does; its gradient is what
/// bwd says. fwd(args...) gives std::pair(the same result, residuals), of which the residuals are kept; bwd(residuals,
/// cotangent of the result) gives a tuple of one cotangent an argument, of exactly its type, or `none` for an argument
/// through which nothing flows. Arguments, results and residuals are arrays or trees of them: tuples, pairs, modules.
/// Second derivatives go through fwd and bwd. Collectives: those of what is written. Source: jax.custom_vjp.
template <class F, class Forward, class Backward>
constexpr auto custom_vjp(F function, Forward fwd, Backward bwd) {
  return ops::custom_vjp_function<F, Forward, Backward>{function, fwd, bwd};
}

}  // namespace tessera
