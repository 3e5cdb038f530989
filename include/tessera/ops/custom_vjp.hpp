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

/// For messages; a scalar where there is none.
template <class T, class M>
constexpr aval first_float_leaf() {
  const graph::list<aval> types = float_leaf_types<T, M>();
  return types.empty() ? aval{} : types[0];
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

/// Outputs of the backward body for one argument: its cotangents, or a number without meaning for each leaf without
/// one.
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

/// What function and fwd give for arguments of these types, over their common mesh.
template <class F, class Forward, class... Args>
struct forward_types {
  using result = std::remove_cvref_t<decltype(std::declval<const F&>()(std::declval<Args&>()...))>;
  using pair = std::remove_cvref_t<decltype(std::declval<const Forward&>()(std::declval<Args&>()...))>;
  static constexpr bool is_pair = requires(pair p) { p.first, p.second; };

  static constexpr auto parts() {
    if constexpr (is_pair)
      return std::type_identity<std::pair<std::remove_cvref_t<decltype(std::declval<pair>().first)>,
                                          std::remove_cvref_t<decltype(std::declval<pair>().second)>>>{};
    else return std::type_identity<std::pair<result, none_t>>{};
  }
  using made = typename decltype(parts())::type::first_type;
  using kept = typename decltype(parts())::type::second_type;
  using mesh = typename join_meshes<typename mesh_of_tree<Args>::type..., typename mesh_of_tree<result>::type,
                                    typename mesh_of_tree<kept>::type>::type;

  static constexpr message failure = [] {
    if constexpr (has_poison<result> || Poison<pair> || has_poison<made> || has_poison<kept>) return message::none;
    else if constexpr (!is_pair) return message::custom_vjp_forward;
    else if constexpr (!std::same_as<body_form<made, mesh>, body_form<result, mesh>>) return message::custom_vjp_result;
    else return message::none;
  }();
  static constexpr bool silent = has_poison<result> || Poison<pair> || has_poison<made> || has_poison<kept>;
  static constexpr bool traced = !silent && failure == message::none;
  using type = typename std::conditional_t<traced, std::type_identity<body_form<result, mesh>>,
                                           std::type_identity<poison>>::type;
};

/// Without an array nothing is traced.
template <class F, class Forward, class... Args>
struct custom_vjp_result
    : std::conditional_t<(has_array<Args> || ...), forward_types<F, Forward, Args...>,
                         std::type_identity<decltype(std::declval<const F&>()(std::declval<Args&>()...))>> {};
template <class F, class Forward, class... Args>
requires(has_poison<Args> || ...) struct custom_vjp_result<F, Forward, Args...> : std::type_identity<poison> {
};

/// Custom gradients within custom gradients that are written, so that one may use its own function: enough for second
/// derivatives.
inline constexpr int max_custom_depth = 2;

constexpr int custom_depth(const graph::graph& here) {
  int depth = 0;
  for (const graph::graph* g = &here; g != nullptr; g = g->parent) depth += g->backward ? 1 : 0;
  return depth;
}

/// Its result's type does not depend on bwd, which may therefore call the function itself.
template <class F, class Forward, class Backward>
struct custom_vjp_function {
  F function;
  Forward forward;
  Backward backward;

  template <class... Args>
  constexpr typename custom_vjp_result<F, Forward, Args...>::type operator()(Args... args) const {
    if constexpr ((has_poison<Args> || ...)) {
      return {};
    } else if constexpr (!(has_array<Args> || ...)) {
      return function(args...);
    } else {
      using types = forward_types<F, Forward, Args...>;
      if constexpr (types::failure == message::custom_vjp_forward) {
        diagnose(report<message::custom_vjp_forward, no_details<types>>);
        return {};
      } else if constexpr (types::failure == message::custom_vjp_result) {
        diagnose(report<message::custom_vjp_result, [] {
          return change_details<"result", typename types::result, typename types::made, typename types::mesh>();
        }>);
        return {};
      } else if constexpr (types::traced) {
        return checked<types>(args...);
      } else {
        return {};
      }
    }
  }

 private:
  template <class Types, class... Args>
  constexpr typename Types::type checked(Args&... args) const {
    using M = typename Types::mesh;
    using residuals = body_form<typename Types::kept, M>;
    using cotangents =
        std::remove_cvref_t<decltype(backward(std::declval<residuals&>(), std::declval<typename Types::type&>()))>;
    using list = typename as_tuple<cotangents>::type;
    if constexpr (has_poison<cotangents>) {
      return {};
    } else if constexpr (!as_tuple<cotangents>::is_one || std::tuple_size_v<list> != sizeof...(Args)) {
      return without_gradient<typename Types::type>({message::custom_vjp_count, -1, {}, {}}, args...);
    } else {
      constexpr std::size_t wrong =
          first_wrong_cotangent<M>(std::type_identity<std::tuple<Args...>>{}, std::type_identity<list>{});
      if constexpr (wrong < sizeof...(Args)) {
        const graph::trace_fault fault{message::custom_vjp_cotangent, -1,
                                       first_float_leaf<std::tuple_element_t<wrong, std::tuple<Args...>>, M>(),
                                       first_float_leaf<std::tuple_element_t<wrong, list>, M>()};
        return without_gradient<typename Types::type>(fault, args...);
      } else {
        return trace<Types, residuals>(args...);
      }
    }
  }

  /// The function itself, in a trace that has a fault. A sentence here, in the middle of a trace, would not be the only
  /// one.
  template <class Result, class... Args>
  constexpr Result without_gradient(const graph::trace_fault& fault, Args&... args) const {
    graph::graph* owner = nullptr;
    ((owner = owner == nullptr ? owner_of_tree(args) : owner), ...);
    if (owner != nullptr) owner->outermost().report(fault);
    return shaped_like<Result>(function(args...));
  }

  template <class Types, class Residuals, class... Args>
  constexpr typename Types::type trace(Args&... args) const {
    using M = typename Types::mesh;
    using Result = typename Types::type;
    graph::graph* owner = nullptr;
    ((owner = owner == nullptr ? owner_of_tree(args) : owner), ...);
    if (owner == nullptr)
      throw value_error("tessera: a traced operation was called outside jit; call it inside a step function");
    graph::graph& here = owner->active();
    const auto made = function(args...);
    graph::list<int> results;
    append_nodes(made, here, results);
    Result form = shaped_like<Result>(made);
    std::size_t next = 0;
    if (custom_depth(here) >= max_custom_depth) {
      set_nodes(form, here, results, next);
      return form;
    }
    const auto kept = forward(args...).second;
    graph::list<int> arguments;
    (append_nodes(args, here, arguments), ...);
    const auto inputs = static_cast<int>(arguments.size());
    arguments.insert(arguments.end(), results.begin(), results.end());
    append_nodes(kept, here, arguments);
    const auto outputs = static_cast<int>(results.size());
    const graph::control c{graph::control_kind::custom_gradient, 0,
                           static_cast<int>(arguments.size()) - inputs - outputs, inputs, outputs};

    open_body traced(here);
    traced.body.backward = true;
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
    for (int r : results) types.push_back(here.type(r));
    open_body* const bodies[] = {&traced};
    const int node = finish(here, c, arguments, bodies);
    for (std::size_t r = 0; r < results.size(); ++r)
      results[r] = graph::add_result(here, node, static_cast<int>(r), types[r]);
    set_nodes(form, here, results, next);
    return form;
  }
};

}  // namespace ops

/// `const auto f = custom_vjp(function, fwd, bwd)`: f(args...) gives what function(args...) does; its gradient is what
/// bwd says. fwd(args...) gives std::pair(the same result, residuals), of which the residuals are kept; bwd(residuals,
/// cotangent of the result) gives a tuple of one cotangent an argument, of exactly its type, or `none` for an argument
/// through which nothing flows. Arguments, results and residuals are arrays or trees of them: tuples, pairs, modules.
/// bwd may use f itself. Second derivatives go through fwd and bwd; higher ones are those of `function`. Collectives:
/// those of what is written. Source: jax.custom_vjp.
template <class F, class Forward, class Backward>
constexpr auto custom_vjp(F function, Forward fwd, Backward bwd) {
  return ops::custom_vjp_function<F, Forward, Backward>{function, fwd, bwd};
}

}  // namespace tessera
