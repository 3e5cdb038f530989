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
concept Stateful = requires {
  typename std::remove_cvref_t<T>::mesh_type;
}
&&!Tensor<T> && !Expr<T>;

/// A module that is passed to a step as one that trains or evaluates: nn::eval_mode(model).
template <class T>
concept Viewed = requires {
  typename std::remove_cvref_t<T>::viewed_type;
};

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
template <class Arg, class Mesh>
requires(Number<Arg>&& DtypeStorage<std::remove_cvref_t<Arg>>) struct traced_argument<Arg, Mesh>
    : std::type_identity<expr<scalar_aval(dtype_of<std::remove_cvref_t<Arg>>), Mesh>> {
};
template <Stateful Arg, class Mesh>
struct traced_argument<Arg, Mesh> : std::type_identity<std::remove_const_t<Arg>> {};
template <Viewed Arg, class Mesh>
requires Stateful<Arg>
struct traced_argument<Arg, Mesh> : std::type_identity<typename std::remove_cvref_t<Arg>::viewed_type> {
};

/// What a step function is called with for an argument; const ones are only read.
template <class Arg, class Mesh>
using argument_of_step = std::conditional_t<std::is_const_v<Arg>, const typename traced_argument<Arg, Mesh>::type,
                                            typename traced_argument<Arg, Mesh>::type>&;

/// The same, or a temporary.
template <bool Copy, class Arg, class Mesh>
using argument_or_copy =
    std::conditional_t<Copy, typename traced_argument<Arg, Mesh>::type&&, argument_of_step<Arg, Mesh>>;

/// What may be passed to a step; a poisoned argument is one that was reported before.
template <class Arg>
concept Traceable = Tensor<Arg> || Number<Arg> || Stateful<Arg> || Poison<Arg>;

template <class Arg, class M>
inline constexpr bool lives_on = meshes_agree<typename mesh_of_argument<Arg>::type, M>;

/// Whether arguments can be traced: each is of a known kind, all live on one mesh, their variables fit it. Reports the
/// first fault.
template <class... Args>
constexpr bool arguments_fit() {
  using Mesh = program_mesh<Args...>;
  if constexpr ((Poison<Args> || ...)) {
    return false;
  } else if constexpr (!(Traceable<Args> && ...)) {
    return !diagnose(report<message::jit_argument, [] {
      const bool known[] = {Traceable<Args>...};
      int first = 0;
      while (known[first]) ++first;
      return text_buffer{} << "argument " << first + 1 << " of the step";
    }>);
  } else if constexpr (((Number<Args> && !DtypeStorage<std::remove_cvref_t<Args>>) || ...)) {
    return !diagnose(report<message::jit_number, [] {
      const bool fits[] = {!Number<Args> || DtypeStorage<std::remove_cvref_t<Args>>...};
      int first = 0;
      while (fits[first]) ++first;
      return text_buffer{} << "argument " << first + 1 << " of the step";
    }>);
  } else if constexpr (!(lives_on<Args, Mesh> && ...)) {
    return !diagnose(report<message::mesh_mismatch, [] {
      text_buffer out;
      ((out << (out.size > 0 ? ", " : "arguments on mesh "), write_mesh(out, mesh_of_argument<Args>::type::value)),
       ...);
      return out;
    }>);
  } else {
    const auto fit = []<class Arg>(std::type_identity<Arg>) {
      if constexpr (Stateful<Arg>) return fits<typename traced_argument<Arg, Mesh>::type, Mesh>();
      else return true;
    };
    return (fit(std::type_identity<Args>{}) && ...);
  }
}

/// What a result that cannot be returned is.
template <class Result>
constexpr text_buffer result_details() {
  text_buffer out;
  if constexpr (Variable<Result>) {
    out << "a variable, ";
    write_aval(out, plain_aval<Result::element, typename Result::shape_type>(), mesh_value{});
    out << ": return reshard<P<...>>(variable)";
  } else if constexpr (Module<Result> || SelfVisiting<Result>) {
    out << "a module or the gradients of one: return arrays of it";
  }
  return out;
}

/// Whether a step's result holds something that was reported, or is none that can be returned, which is reported here.
template <class Result>
constexpr bool result_refused() {
  if constexpr (std::is_void_v<Result> || Expr<Result>) {
    return false;
  } else if constexpr (Poison<Result>) {
    return true;
  } else if constexpr (requires { std::tuple_size<Result>::value; }) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (false | ... | result_refused<std::remove_cvref_t<std::tuple_element_t<I, Result>>>());
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>{});
  } else {
    return diagnose(report<message::jit_result, &result_details<Result>>);
  }
}

/// The abstract value of a variable over a mesh.
template <class V, class Mesh>
inline constexpr aval variable_type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;

/// The layers of an argument evaluate if it is passed as one that does.
template <class Arg, class Handle>
constexpr void set_mode([[maybe_unused]] Handle& handle) {
  if constexpr (Viewed<Arg>)
    visit_variables(handle, [](auto& v) { v.handle.evaluates = std::remove_cvref_t<Arg>::evaluates; });
}

/// A new parameter for an array, or for each variable of a module.
template <class Mesh, class Handle>
constexpr void bind_argument(graph::graph& g, Handle& handle) {
  if constexpr (Expr<Handle>) {
    handle.handle = {&g, g.add_parameter(Handle::type)};
  } else {
    visit_variables(handle, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      v.handle = {&g, g.add_parameter(variable_type<V, Mesh>), &v.handle, false, v.handle.evaluates};
    });
  }
}

/// Calls f(expr) for each traced array in a result: an array, or a tuple, pair or array of results.
template <class Result, class F>
constexpr void for_each_result(const Result& result, F&& f) {
  if constexpr (Expr<Result>) f(result);
  else std::apply([&](const auto&... parts) { (for_each_result(parts, f), ...); }, result);
}

/// What is wrong with a handle at the end of a trace: it stands for nothing, or for a node that only a body has.
constexpr message fault_of(const graph::graph& g, const trace_handle& handle) {
  if (handle.owner == nullptr) return message::module_unnamed;
  return g.sees(handle.owner) ? message::none : message::scan_escape;
}

/// Every variable of an argument that stands for another node than at first becomes an output.
template <class Handle>
constexpr void collect_changes(graph::graph& g, const Handle& handle, int argument, int& next) {
  if constexpr (Expr<Handle>) {
    ++next;
  } else {
    visit_variables(handle, [&](const auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      const int parameter = g.parameters[static_cast<std::size_t>(next)];
      if (const message fault = fault_of(g, v.handle); fault != message::none)
        g.report({fault, argument, plain_aval<V::element, typename V::shape_type>()});
      else if (v.handle.id != parameter) g.outputs.push_back({v.handle.id, next});
      else if (&v.handle == g.changed_copy) g.report({message::step_copy, argument, {}});
      ++next;
    });
  }
}

/// The first fault noted in a graph or its bodies.
constexpr graph::trace_fault first_fault(const graph::graph& g) {
  graph::trace_fault found = g.fault;
  for (const graph::graph& body : g.bodies)
    if (found.what == message::none) found = first_fault(body);
  return found;
}

/// The arrays of a result are outputs.
template <class Result>
constexpr void put_results(graph::graph& g, const Result& result) {
  for_each_result(result, [&](const auto& e) {
    if (const message fault = fault_of(g, e.handle); fault != message::none) g.report({fault, -1, e.type});
    else g.outputs.push_back({e.handle.id, -1});
  });
}

/// The end of a trace: changed variables are outputs, the first fault of all is the trace's.
template <class... Handles>
constexpr void collect_all_changes(graph::graph& g, const std::tuple<Handles...>& handles) {
  int next = 0, argument = 0;
  std::apply([&](const auto&... each) { (collect_changes(g, each, argument++, next), ...); }, handles);
  g.fault = first_fault(g);
  g.changed_copy = nullptr;
}

/// Step function F applied to arguments of types Args (tensors, bound modules, optimizers, numbers; const ones are only
/// read). It is refused if an error was reported on the way to its result; then it is not run. Who asks for the
/// type of F's result before makes what a compiler says of an error in F shorter.
template <const auto& F, class... Args>
struct traced {
  using mesh_type = program_mesh<Args...>;
  using handles = std::tuple<typename traced_argument<Args, mesh_type>::type...>;

  using result_type = decltype(F(std::declval<argument_of_step<Args, mesh_type>>()...));
  static constexpr bool refused = result_refused<std::remove_cvref_t<result_type>>();

  static constexpr decltype(auto) call(handles& h) {
    return [&]<std::size_t... I>(std::index_sequence<I...>)->decltype(auto) {
      return F(static_cast<argument_of_step<Args, mesh_type>>(std::get<I>(h))...);
    }
    (std::index_sequence_for<Args...>{});
  }

  static constexpr graph::graph run() {
    graph::graph g;
    g.mesh = mesh_type::value;
    handles h{};
    std::apply([&](auto&... each) { (set_mode<Args>(each), ...), (bind_argument<mesh_type>(g, each), ...); }, h);
    if constexpr (std::is_void_v<result_type>) {
      call(h);
    } else {
      put_results(g, call(h));
    }
    collect_all_changes(g, h);
    return g;
  }

  /// Whether the step takes argument number I by value, or by a reference that a temporary can be bound to.
  template <int I>
  static constexpr bool takes_copies() {
    return []<std::size_t... J>(std::index_sequence<J...>) {
      return requires { F(std::declval<argument_or_copy<static_cast<int>(J) == I, Args, mesh_type>>()...); };
    }
    (std::index_sequence_for<Args...>{});
  }
};

/// Arguments that cannot be traced.
template <const auto& F, class... Args>
requires(!arguments_fit<Args...>()) struct traced<F, Args...> {
  using mesh_type = mesh<>;
  using result_type = poison;
  static constexpr bool refused = true;
};

}  // namespace tessera::transform
