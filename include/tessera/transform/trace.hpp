// SPDX-License-Identifier: Apache-2.0
// Running a step function once with handles instead of arrays, in a constant expression.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/graph/expr.hpp>
#include <tessera/graph/visit.hpp>
#include <tessera/runtime/tensor.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera::transform {

/// An object whose variables a step reads and replaces: a bound module, an optimizer.
template <class T>
concept Stateful = requires { typename std::remove_cvref_t<T>::mesh_type; } && !Tensor<T> && !Expr<T>;

/// The mesh an argument brings along.
template <class T>
struct mesh_of_argument : std::type_identity<open_mesh<>> {};
template <class T>
  requires requires { typename std::remove_cvref_t<T>::mesh_type; }
struct mesh_of_argument<T> : std::type_identity<typename std::remove_cvref_t<T>::mesh_type> {};

template <class M>
struct closed_mesh : std::conditional<M::open, mesh<>, M> {};

/// The mesh of a program; `mesh<>` where no argument has one.
template <class... Args>
using program_mesh = typename closed_mesh<typename join_meshes<typename mesh_of_argument<Args>::type...>::type>::type;

/// What stands for an argument in the trace.
template <class Arg, class Mesh>
struct traced_argument;
template <Tensor Arg, class Mesh>
struct traced_argument<Arg, Mesh> : std::type_identity<expr<std::remove_cvref_t<Arg>::type, Mesh>> {};
template <Number Arg, class Mesh>
struct traced_argument<Arg, Mesh>
    : std::type_identity<expr<scalar_aval(dtype_of<std::remove_cvref_t<Arg>>), Mesh>> {};
template <Stateful Arg, class Mesh>
struct traced_argument<Arg, Mesh> : std::type_identity<std::remove_const_t<Arg>> {};

template <class Arg>
inline constexpr bool is_traceable = Tensor<Arg> || Number<Arg> || Stateful<Arg>;

/// The abstract value of a variable over a mesh.
template <class V, class Mesh>
inline constexpr aval variable_type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;

template <class Mesh, class Handle>
constexpr void bind_argument(graph::graph& g, Handle& handle) {
  if constexpr (Expr<Handle>) {
    handle.handle = {&g, g.add_parameter(Handle::type)};
  } else {
    visit_variables(handle, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      v.handle = {&g, g.add_parameter(variable_type<V, Mesh>)};
    });
  }
}

/// Calls f(expr) for each traced array in a result: an array, or a tuple, pair or array of results.
template <class Result, class F>
constexpr void for_each_result(const Result& result, F&& f) {
  if constexpr (Expr<Result>) {
    f(result);
  } else if constexpr (Poison<Result>) {
    return;
  } else if constexpr (requires { std::tuple_size<Result>::value; }) {
    std::apply([&](const auto&... parts) { (for_each_result(parts, f), ...); }, result);
  } else {
    diagnose<message::jit_result, no_details<Result>>();
  }
}

template <class Handle>
constexpr void collect_changes(graph::graph& g, const Handle& handle, int& next) {
  if constexpr (Expr<Handle>) {
    ++next;
  } else {
    visit_variables(handle, [&](const auto& v) {
      const int parameter = g.parameters[static_cast<std::size_t>(next)];
      if (v.handle.id != parameter) g.outputs.push_back({v.handle.id, next});
      ++next;
    });
  }
}

/// Step function F applied to arguments of types Args (tensors, bound modules, optimizers, numbers; const ones are only
/// read).
template <const auto& F, class... Args>
struct traced {
  using mesh_type = program_mesh<Args...>;

  template <class Arg>
  using handle_type = typename traced_argument<Arg, mesh_type>::type;
  using handles = std::tuple<handle_type<Args>...>;

  template <class Arg, class Handle>
  static constexpr auto& as_argument(Handle& handle) {
    if constexpr (std::is_const_v<Arg>) return std::as_const(handle);
    else return handle;
  }

  static constexpr decltype(auto) call(handles& h) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      return F(as_argument<Args>(std::get<I>(h))...);
    }(std::index_sequence_for<Args...>{});
  }

  using result_type = decltype(call(std::declval<handles&>()));

  static constexpr graph::graph run() {
    graph::graph g;
    g.mesh = mesh_type::value;
    handles h{};
    std::apply([&](auto&... each) { (bind_argument<mesh_type>(g, each), ...); }, h);
    if constexpr (std::is_void_v<result_type>) {
      call(h);
    } else {
      const auto result = call(h);
      for_each_result(result, [&](const auto& e) { g.outputs.push_back({e.handle.id, -1}); });
    }
    int next = 0;
    std::apply([&](const auto&... each) { (collect_changes(g, each, next), ...); }, h);
    return g;
  }
};

}  // namespace tessera::transform
