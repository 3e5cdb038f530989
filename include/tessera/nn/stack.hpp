// SPDX-License-Identifier: Apache-2.0
// Layers of one kind, one behind the other, with their variables side by side: traced, differentiated and compiled
// once.
#pragma once

#include <tessera/graph/paths.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/ops/control.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera::nn {

/// The spec of arrays side by side, along a leading dimension that is uncut.
template <class Spec>
struct stacked_spec : std::type_identity<Spec> {};
template <class... Parts>
requires(partition_spec<Parts...>::rank > 0) struct stacked_spec<partition_spec<Parts...>>
    : std::type_identity<partition_spec<cut<>, Parts...>> {
};

template <std::int64_t N, class Shape>
struct stacked_shape;
template <std::int64_t N, std::int64_t... Extents>
struct stacked_shape<N, shape<Extents...>> : std::type_identity<shape<N, Extents...>> {};

template <std::int64_t N, class V>
using variable_side_by_side =
    variable<typename V::variable_kind, V::element, typename stacked_shape<N, typename V::shape_type>::type,
             typename stacked_spec<typename V::spec_type>::type, V::init, typename V::role, V::master>;

/// N variables of type V side by side. Leaf is its place among the variables of a layer.
template <std::int64_t N, class V, int Leaf>
struct stacked_variable : variable_side_by_side<N, V> {
  using layer_variable = V;
  static constexpr std::int64_t layers = N;
  static constexpr int leaf = Leaf;

  using variable_side_by_side<N, V>::operator=;
};

template <std::int64_t N, class Block>
struct stack;

template <class T>
inline constexpr bool is_stack = false;
template <std::int64_t N, class Block>
inline constexpr bool is_stack<stack<N, Block>> = true;

namespace detail {

/// The variables of a layer.
template <class... Vs>
struct variable_list {
  static constexpr std::size_t length = sizeof...(Vs);
};

template <class T>
struct part {};

template <class... Vs, class T>
constexpr auto operator+(variable_list<Vs...> met, part<T>) {
  if constexpr (Variable<T>) {
    return variable_list<Vs..., T>{};
  } else if constexpr (is_stack<T>) {
    return []<class... Inside>(std::type_identity<std::tuple<Inside...>>) {
      return variable_list<Vs..., Inside...>{};
    }(std::type_identity<typename T::variables>{});
  } else if constexpr (Module<T>) {
    constexpr auto accessors = T::hana_accessors_impl::apply();
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (met + ... +
              part<std::remove_cvref_t<decltype(boost::hana::second(boost::hana::at_c<I>(accessors))(
                  std::declval<T&>()))>>{});
    }
    (std::make_index_sequence<decltype(boost::hana::length(accessors))::value>{});
  } else if constexpr (is_sequence<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return (met + ... + part<std::tuple_element_t<I, T>>{}); }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    static_assert(!SelfVisiting<T>, "a layer of nn::stack holds something that walks over its own variables");
    return met;
  }
}

template <std::int64_t N, class List, class Leaves>
struct side_by_side;
template <std::int64_t N, class... Vs, std::size_t... Leaf>
struct side_by_side<N, variable_list<Vs...>, std::index_sequence<Leaf...>>
    : std::type_identity<std::tuple<stacked_variable<N, Vs, static_cast<int>(Leaf)>...>> {};

/// What a layer with its handles leaves behind besides its result: its variables that are no parameters.
template <class M, class Block>
constexpr auto states_of(Block& block) {
  // Types come from the variables, handles from the walk.
  using list = decltype(variable_list<>{} + part<std::remove_const_t<Block>>{});
  const auto arrays = []<class... Vs>(variable_list<Vs...>) {
    const auto array = []<class V>(std::type_identity<V>) {
      if constexpr (std::same_as<typename V::variable_kind, param>) return std::tuple<>{};
      else return std::tuple<typename ops::over<M>::template leaf<V>::type>{};
    };
    return std::tuple_cat(array(std::type_identity<Vs>{})...);
  };
  auto states = arrays(list{});
  graph::list<trace_handle> handles;
  visit_variables(block, [&](auto& v) {
    if constexpr (!std::same_as<typename std::remove_cvref_t<decltype(v)>::variable_kind, param>)
      handles.push_back(v.handle);
  });
  std::size_t next = 0;
  std::apply([&](auto&... each) { ((each.handle = handles[next++]), ...); }, states);
  return states;
}

}  // namespace detail

/// N layers of type Block whose variables lie side by side, along a leading dimension of extent N that is uncut.
/// `layers(x)` is block(...block(block(x))), a scan: the block is traced, differentiated, planned and compiled once,
/// whatever N. `layers.apply(f, x)` calls f(block, x) for every layer, so `apply(checkpoint<policy>(f), x)` computes
/// layers again for the gradient; in `scan(f, carry, layers)`, alone or beside arrays, f gets a layer for each trip.
/// Variables of other kinds than `param` that a layer changes are changed in the stack. Keys: the stack draws one key
/// from each stream there is; layer i draws from streams of its own, with base split(key, N)[i]. Stacks nest. Gradient,
/// memory and collectives: those of scan. Errors: a layer that gives another type than it takes. Source: flax.nnx.scan,
/// nnx.vmap, nnx.split_rngs.
template <std::int64_t N, class Block>
struct stack {
  static_assert(N > 0, "nn::stack<N, Block> has one layer or more");
  using block_type = Block;
  using layer_list = decltype(detail::variable_list<>{} + detail::part<Block>{});
  using variables = typename detail::side_by_side<N, layer_list, std::make_index_sequence<layer_list::length>>::type;
  static constexpr std::int64_t layers = N;

  Block block;        ///< configuration of the layers; its variables are empty
  variables stacked;  ///< the variables of all layers, in the order of a layer's

  template <class F>
  constexpr void visit_variables(F&& f) {
    std::apply([&](auto&... v) { (f(v), ...); }, stacked);
  }
  template <class F>
  constexpr void visit_variables(F&& f) const {
    std::apply([&](const auto&... v) { (f(v), ...); }, stacked);
  }

  template <class F>
  constexpr void visit_paths(member_path& path, F&& f) const {
    constexpr auto paths = paths_of_layer();
    const auto visit = [&](const auto& v) {
      const std::size_t here = path.size();
      path.enter(paths[static_cast<std::size_t>(v.leaf)].view());
      f(path, v);
      path.leave_to(here);
    };
    std::apply([&](const auto&... v) { (visit(v), ...); }, stacked);
  }

  /// The variable of all layers that is `block.*Members...` in one: `layers.get<&block::up, &linear<8, 32>::kernel>()`.
  template <auto... Members>
  constexpr auto& get() {
    return std::get<static_cast<std::size_t>(place_of<Members...>())>(stacked);
  }
  template <auto... Members>
  constexpr const auto& get() const {
    return std::get<static_cast<std::size_t>(place_of<Members...>())>(stacked);
  }

  template <class X, class... Rest>
  constexpr auto operator()(const X& x, const Rest&... rest) {
    return apply([](auto& layer, const auto&... args) { return layer(args...); }, x, rest...);
  }
  template <class X, class... Rest>
  constexpr auto operator()(const X& x, const Rest&... rest) const {
    return apply([](auto& layer, const auto&... args) { return layer(args...); }, x, rest...);
  }

  template <class F, class X, class... Rest>
  constexpr auto apply(F f, const X& x, const Rest&... rest) {
    auto [out, states] = scan(
        [&](auto carry, Block layer) {
          ops::watch watched(layer);
          auto made = f(layer, carry, rest...);
          watched.end();
          if constexpr (Poison<decltype(made)>) return poison{};
          else return std::pair(made, detail::states_of<typename ops::mesh_of_tree<decltype(made)>::type>(layer));
        },
        x, *this);
    if constexpr (!Poison<decltype(states)>) {
      graph::list<trace_handle> handles;
      ops::for_each_leaf(states, [&](const auto& e) { handles.push_back(e.handle); });
      std::size_t next = 0;
      visit_variables([&](auto& v) {
        if constexpr (!std::same_as<typename std::remove_cvref_t<decltype(v)>::variable_kind, param>) {
          v.handle.become(handles[next].owner, handles[next].id);
          ++next;
        }
      });
    }
    return out;
  }
  template <class F, class X, class... Rest>
  constexpr auto apply(F f, const X& x, const Rest&... rest) const {
    const auto call = [&](auto carry, Block layer) {
      auto made = f(layer, carry, rest...);
      if constexpr (Poison<decltype(made)>) return poison{};
      else return std::pair(made, none);
    };
    return scan(call, x, *this).first;
  }

 private:
  static constexpr auto paths_of_layer() {
    std::array<member_path, std::tuple_size_v<variables>> paths{};
    std::size_t next = 0;
    const Block block{};
    tessera::visit_paths(block, [&](const member_path& path, const auto&) { paths[next++] = path; });
    return paths;
  }

  template <auto... Members>
  static constexpr int place_of() {
    Block block{};
    const void* wanted = &(block.*....*Members);
    int found = -1, next = 0;
    tessera::visit_variables(block, [&](auto& v) {
      if (static_cast<const void*>(&v) == wanted) found = next;
      ++next;
    });
    return found;
  }
};

}  // namespace tessera::nn
