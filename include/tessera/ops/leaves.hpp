// SPDX-License-Identifier: Apache-2.0
// Arguments and results of functions that run in a region of their own: arrays, numbers and tuples of them.
#pragma once

#include <tessera/ops/tree.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera::ops {

template <class T, class Leaf>
constexpr bool every_leaf(Leaf is_leaf) {
  if constexpr (is_tuple<T>) return []<std::size_t... I>(std::index_sequence<I...>, Leaf check) {
      return (every_leaf<std::remove_cvref_t<std::tuple_element_t<I, T>>>(check) && ...);
    }
  (std::make_index_sequence<std::tuple_size_v<T>>{}, is_leaf);
  else return is_leaf(std::type_identity<T>{}); }

template <class T>
constexpr bool is_mapped_argument() {
  return every_leaf<T>([]<class L>(std::type_identity<L>) { return Expr<L> || Variable<L> || Number<L>; });
}
template <class T>
constexpr bool is_mapped_result() {
  return every_leaf<T>([]<class L>(std::type_identity<L>) { return Expr<L>; });
}
template <class T>
constexpr bool holds_poison() {
  return !every_leaf<T>([]<class L>(std::type_identity<L>) { return !Poison<L>; });
}

/// Calls f(leaf) for every array or number in `x` and builds the same tuple of the results.
template <class T, class F>
constexpr auto map_leaves(const T& x, F f) {
  if constexpr (is_tuple<T>)
    return std::apply([&](const auto&... parts) { return std::tuple{map_leaves(parts, f)...}; }, x);
  else return f(x);
}

/// Specs, one an argument or result.
template <class... Specs>
struct spec_list {
  static constexpr std::size_t size = sizeof...(Specs);
  template <std::size_t I>
  using at = std::tuple_element_t<I, std::tuple<Specs...>>;
};

/// Calls f<I, spec I>(leaf) for all leaves of part I of a result; a single spec is that of all leaves.
template <class Specs, class Result, class F>
constexpr auto map_with_specs(const Result& result, F f) {
  if constexpr (Specs::size == 1) {
    return map_leaves(result,
                      [&](const auto& leaf) { return f.template operator()<0, typename Specs::template at<0>>(leaf); });
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple{map_leaves(std::get<I>(result), [&](const auto& leaf) {
        return f.template operator()<I, typename Specs::template at<I>>(leaf);
      })...};
    }
    (std::make_index_sequence<Specs::size>{});
  }
}

/// How many results a function gave, for a list of specs.
template <class Result>
constexpr std::size_t results_in() {
  if constexpr (is_tuple<Result>) return std::tuple_size_v<Result>;
  else return 1;
}

/// The node of an array in the graph that is being written.
template <class X>
constexpr graph::value node_of(const X& x) {
  graph::graph* owner = x.handle.owner != nullptr ? &x.handle.owner->active() : nullptr;
  return operand_value(owner, x, dtype::f32);
}

}  // namespace tessera::ops
