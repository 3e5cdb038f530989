// SPDX-License-Identifier: Apache-2.0
// The handle a traced function computes with: its type is the abstract value, its value is a node of the trace.
#pragma once

#include <tessera/core/resolve.hpp>
#include <tessera/core/type_text.hpp>
#include <tessera/graph/graph.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace tessera {

/// A node of a trace, whatever its type.
struct trace_handle {
  graph::graph* owner = nullptr;
  int id = -1;
  const trace_handle* home = nullptr;  ///< of an argument's variable: its place; a copy has it too
  bool watched = false;                ///< of another variable: bodies that change it hand the change on, as for `home`
  bool evaluates = false;              ///< of a variable: its layer evaluates, it does not train

  /// Stands for another node from now on. A body notes that it changes a variable from around it; that a copy of an
  /// argument is changed is noted too.
  constexpr void become(graph::graph* graph, int node) {
    if (owner != nullptr && graph != nullptr && (watched || home != nullptr)) {
      tessera::graph::graph& here = owner->active();
      if (home != nullptr && home != this) {
        here.outermost().note_changed_copy(home);
      } else if (here.sees(graph)) {
        if (owner != &here) here.assigned.push_back({this, owner, id});
        node = here.import_node(graph, node);
        graph = &here;
      }
    }
    owner = graph;
    id = node;
  }

  /// Stands for a node, as nobody's variable.
  constexpr void stand_for(graph::graph* graph, int node) {
    owner = graph;
    id = node;
    home = nullptr;
    watched = false;
  }
};

/// A traced array: dtype, shape and sharding are its type, over Mesh.
template <aval Type, class Mesh>
struct expr {
  static constexpr aval type = Type;
  static constexpr int rank = Type.rank;
  using mesh_type = Mesh;

  trace_handle handle{};
};

template <class T>
inline constexpr bool is_expr = false;
template <aval Type, class Mesh>
inline constexpr bool is_expr<expr<Type, Mesh>> = true;

template <class T>
concept Expr = is_expr<std::remove_cvref_t<T>>;

template <class T>
concept Poison = is_poison<std::remove_cvref_t<T>>;

/// A module's variable: dtype, shape and spec are known, its mesh is the one it meets.
template <class T>
concept Variable = requires {
  typename std::remove_cvref_t<T>::variable_kind;
};

template <class T>
concept Number = std::is_arithmetic_v<std::remove_cvref_t<T>>;

/// An array that holds memory. Operations do not take it: they are traced.
template <class T>
concept RuntimeArray = requires {
  typename std::remove_cvref_t<T>::runtime_array;
};

/// What may stand where an operation wants an array. One that holds memory gets a sentence.
template <class T>
concept ArrayLike = Expr<T> || Variable<T> || Poison<T> || RuntimeArray<T>;

/// What may stand beside an array in an elementwise operation.
template <class T>
concept Operand = ArrayLike<T> || Number<T>;

template <class Spec, class Names = open_mesh<>>
struct open_mesh_of;

template <class Known, text... Names>
struct with_names : std::type_identity<Known> {};
template <text... Known, text Name, text... Rest>
struct with_names<open_mesh<Known...>, Name, Rest...>
    : std::conditional_t<(false || ... || (Known.view() == Name.view())), with_names<open_mesh<Known...>, Rest...>,
                         with_names<open_mesh<Known..., Name>, Rest...>> {};

template <class Known, class... Cuts>
struct names_of_cuts : std::type_identity<Known> {};
template <class Known, text... Names, class... Rest>
struct names_of_cuts<Known, cut<Names...>, Rest...>
    : names_of_cuts<typename with_names<Known, Names...>::type, Rest...> {};

template <class Known, axis_use Use, text... Names, class... Rest>
struct names_of_cuts<Known, marked<Use, Names...>, Rest...>
    : names_of_cuts<typename with_names<Known, Names...>::type, Rest...> {};

template <class... Cuts>
struct open_mesh_of<partition_spec<Cuts...>, open_mesh<>> : names_of_cuts<open_mesh<>, Cuts...> {};

template <class A, class B>
struct join_open;
template <class A, text... Names>
struct join_open<A, open_mesh<Names...>> : with_names<A, Names...> {};

/// The mesh of several operands: the closed one if there is one (the innermost region of it), else all their axes
/// together.
template <class... Meshes>
struct join_meshes;
template <>
struct join_meshes<> : std::type_identity<open_mesh<>> {};
template <class First>
struct join_meshes<First> : std::type_identity<First> {};
template <class First, class Second, class... Rest>
struct join_meshes<First, Second, Rest...>
    : join_meshes<
          typename std::conditional_t<First::open && Second::open, join_open<First, Second>,
                                      std::conditional_t<First::open || lies_within<Second, First>(),
                                                         std::type_identity<Second>, std::type_identity<First>>>::type,
          Rest...> {};

template <class A, class B>
inline constexpr bool meshes_agree = A::open || B::open || lies_within<A, B>() || lies_within<B, A>();

}  // namespace tessera
