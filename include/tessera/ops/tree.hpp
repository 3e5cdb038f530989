// SPDX-License-Identifier: Apache-2.0
// Trees of values: what loops carry and branches return - arrays, numbers, modules, tuples and pairs of them.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/ops/apply.hpp>

#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera::ops {

template <class T>
inline constexpr bool is_tuple = is_sequence<T>;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// An object whose variables are leaves: a module, an optimizer.
template <class T>
concept Walked = (Module<T> || SelfVisiting<T>)&&!ArrayLike<T>;

/// The element type a number has as an array of its own.
template <Number T>
constexpr dtype number_element() {
  if constexpr (std::same_as<T, bool>) return dtype::bool_;
  else return std::is_floating_point_v<T> ? dtype::f32 : dtype::i32;
}

/// The mesh that a tree brings along.
template <class T>
struct mesh_of_tree : mesh_of<T> {};
template <Walked T>
requires requires { typename T::mesh_type; }
struct mesh_of_tree<T> : std::type_identity<typename T::mesh_type> {};
template <class... Ts>
struct mesh_of_tree<std::tuple<Ts...>> : join_meshes<typename mesh_of_tree<Ts>::type...> {};
template <class A, class B>
struct mesh_of_tree<std::pair<A, B>> : join_meshes<typename mesh_of_tree<A>::type, typename mesh_of_tree<B>::type> {};
template <class T, std::size_t N>
struct mesh_of_tree<std::array<T, N>> : mesh_of_tree<T> {};

/// The tree with every leaf changed: Leaf<T>::type stands for leaf T.
template <class T, template <class> class Leaf>
struct map_tree : Leaf<T> {};
template <class... Ts, template <class> class Leaf>
struct map_tree<std::tuple<Ts...>, Leaf> : std::type_identity<std::tuple<typename map_tree<Ts, Leaf>::type...>> {};
template <class A, class B, template <class> class Leaf>
struct map_tree<std::pair<A, B>, Leaf>
    : std::type_identity<std::pair<typename map_tree<A, Leaf>::type, typename map_tree<B, Leaf>::type>> {};
template <class T, std::size_t N, template <class> class Leaf>
struct map_tree<std::array<T, N>, Leaf> : std::type_identity<std::array<typename map_tree<T, Leaf>::type, N>> {};

/// What stands for a value within a body over mesh M: numbers and variables become arrays, modules stay.
template <class M>
struct over {
  template <class T>
  struct leaf : std::type_identity<T> {};
  template <class T>
  requires(Expr<T> || Variable<T>) struct leaf<T> : std::type_identity<expr<operand_on<T, M, dtype::f32>().result, M>> {
  };
  template <Number T>
  struct leaf<T> : std::type_identity<expr<scalar_aval(number_element<T>()), M>> {};
};
template <class T, class M>
using body_form = typename map_tree<T, over<M>::template leaf>::type;

/// Calls f(leaf) for every array, number and variable of a tree, in order.
template <class T, class F>
constexpr void for_each_leaf(T& tree, F&& f) {
  using bare = std::remove_const_t<T>;
  if constexpr (is_tuple<bare>) std::apply([&](auto&... parts) { (for_each_leaf(parts, f), ...); }, tree);
  else if constexpr (ArrayLike<bare> || Number<bare>) f(tree);
  else if constexpr (Walked<bare>) visit_variables(tree, f);
}

/// Whether f(type of leaf) holds for some leaf: f is called with a std::type_identity.
template <class T, class F>
constexpr bool any_leaf(F f) {
  bool found = false;
  std::remove_cvref_t<T> tree{};
  for_each_leaf(tree,
                [&](auto& leaf) { found = found || f(std::type_identity<std::remove_cvref_t<decltype(leaf)>>{}); });
  return found;
}
template <class T>
inline constexpr bool has_poison = any_leaf<T>([]<class Leaf>(std::type_identity<Leaf>) { return Poison<Leaf>; });
template <class T>
inline constexpr bool has_array = any_leaf<T>([]<class Leaf>(std::type_identity<Leaf>) {
  return Expr<Leaf> || Variable<Leaf>;
});

/// Whether a tree is made of arrays, numbers and nothing else.
template <class T>
inline constexpr bool is_plain = ArrayLike<T> || Number<T> || std::same_as<T, none_t>;
template <class... Ts>
inline constexpr bool is_plain<std::tuple<Ts...>> = (is_plain<Ts> && ...);
template <class A, class B>
inline constexpr bool is_plain<std::pair<A, B>> = is_plain<A>&& is_plain<B>;
template <class T, std::size_t N>
inline constexpr bool is_plain<std::array<T, N>> = is_plain<T>;

/// The types of the leaves over mesh M.
template <class T, class M>
constexpr graph::list<aval> leaf_types() {
  graph::list<aval> types;
  std::remove_cvref_t<T> tree{};
  for_each_leaf(tree, [&]<class Leaf>(Leaf&) {
    if constexpr (Number<Leaf>) types.push_back(scalar_aval(number_element<Leaf>()));
    else if constexpr (!Poison<Leaf>) types.push_back(operand_on<Leaf, M, dtype::f32>().result);
  });
  return types;
}

/// Writes the types of the leaves, with commas between them.
template <class T, class M>
constexpr void write_leaves(text_buffer& out) {
  bool first = true;
  for (const aval& type : leaf_types<T, M>()) {
    out << (first ? "" : ", ");
    write_aval(out, type, M::value);
    first = false;
  }
  if (first) out << "nothing";
}

/// A graph that a leaf of the tree belongs to, or null.
template <class T>
constexpr graph::graph* owner_of_tree(const T& tree) {
  graph::graph* found = nullptr;
  for_each_leaf(tree, [&](const auto& leaf) {
    if constexpr (requires { leaf.handle; })
      if (found == nullptr) found = leaf.handle.owner;
  });
  return found;
}

/// Appends the node of every leaf, seen from `here`.
template <class T>
constexpr void append_nodes(const T& tree, graph::graph& here, graph::list<int>& nodes) {
  for_each_leaf(tree, [&]<class Leaf>(const Leaf& leaf) {
    if constexpr (Number<Leaf>) nodes.push_back(operand_value(&here, leaf, number_element<Leaf>()).id);
    else if constexpr (!Poison<Leaf>) nodes.push_back(operand_value(&here, leaf, dtype::f32).id);
  });
}

/// Makes the leaves of a tree stand for nodes of `g`, one after another from `nodes[next]` on.
template <class T>
constexpr void set_nodes(T& tree, graph::graph& g, const graph::list<int>& nodes, std::size_t& next) {
  for_each_leaf(tree, [&](auto& leaf) {
    if constexpr (requires { leaf.handle; }) leaf.handle.stand_for(&g, nodes[next++]);
  });
}

/// A module of layers side by side, nn::stack.
template <class T>
concept Stacked = requires {
  typename T::block_type;
  typename T::layer_list;
};

/// Whether a tree holds a module that is no stack.
template <class T>
inline constexpr bool holds_unstacked = Walked<T> && !Stacked<T>;
template <class... Ts>
inline constexpr bool holds_unstacked<std::tuple<Ts...>> = (holds_unstacked<Ts> || ...);
template <class A, class B>
inline constexpr bool holds_unstacked<std::pair<A, B>> = holds_unstacked<A> || holds_unstacked<B>;
template <class T, std::size_t N>
inline constexpr bool holds_unstacked<std::array<T, N>> = holds_unstacked<T>;

/// A layer of a stack: its configuration, and whether its variables evaluate.
template <Stacked T>
constexpr typename T::block_type layer_of(const T& from) {
  typename T::block_type layer = from.block;
  graph::list<char> evaluates;
  visit_variables(from, [&](const auto& v) { evaluates.push_back(v.handle.evaluates ? 1 : 0); });
  std::size_t next = 0;
  visit_variables(layer, [&](auto& v) { v.handle.evaluates = evaluates[next++] != 0; });
  return layer;
}

/// The variables of a module that a function is given by reference: bodies within it hand on what they change there.
template <class T>
class watch {
 public:
  constexpr explicit watch(T& object) : object_(object) {
    if constexpr (watches)
      visit_variables(object_, [&](auto& v) {
        before_.push_back({v.handle.home, v.handle.watched});
        if (v.handle.home != &v.handle) v.handle.home = nullptr, v.handle.watched = true;
      });
  }
  /// From now on as before.
  constexpr void end() {
    std::size_t next = 0;
    if constexpr (watches)
      visit_variables(object_, [&](auto& v) {
        v.handle.home = before_[next].home;
        v.handle.watched = before_[next++].watched;
      });
  }

 private:
  struct state {
    const trace_handle* home = nullptr;
    bool watched = false;
  };
  static constexpr bool watches = Walked<std::remove_const_t<T>> && !std::is_const_v<T>;

  T& object_;
  graph::list<state> before_{};
};

/// A tree of form Form, with the configuration of the modules in `from`.
template <class Form, class T>
constexpr Form shaped_like(const T& from) {
  if constexpr (std::same_as<Form, T>) {
    return from;
  } else if constexpr (is_tuple<Form>) {
    Form form{};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((std::get<I>(form) = shaped_like<std::tuple_element_t<I, Form>>(std::get<I>(from))), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Form>>{});
    return form;
  } else if constexpr (Stacked<T>) {
    return layer_of(from);
  } else {
    return Form{};
  }
}

}  // namespace tessera::ops
