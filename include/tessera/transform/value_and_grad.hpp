// SPDX-License-Identifier: Apache-2.0
// Gradients of a function of a module or an array, within a trace.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/transform/grad.hpp>

#include <utility>

namespace tessera {

/// Says that the function returns a pair: the loss, and something that is passed on.
struct has_aux_t {};
inline constexpr has_aux_t has_aux{};

/// The gradients of a module: walked over as the module is, and not mistaken for it.
template <class Model>
struct gradients : Model {
  using gradients_of = Model;
};

template <class T>
concept Gradients = requires {
  typename std::remove_cvref_t<T>::gradients_of;
};

/// What value_and_grad returns: `auto [l, grads] = ...`; with has_aux `l` is a pair (loss, aux).
template <class Value, class Grads>
struct value_with_gradients {
  Value value;
  Grads gradients;
};

namespace transform {

/// Calls f(handle) for each parameter of a differentiated argument.
template <class Arg, class F>
constexpr void visit_differentiated(Arg& arg, F&& f) {
  if constexpr (Expr<Arg>) {
    if constexpr (is_floating(std::remove_cvref_t<Arg>::type.type)) f(arg.handle);
  } else if constexpr (is_sequence<std::remove_cvref_t<Arg>>) {
    std::apply([&](auto&... parts) { (visit_differentiated(parts, f), ...); }, arg);
  } else if constexpr (!Number<Arg>) {
    visit_variables(arg, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (std::same_as<typename V::variable_kind, nn::param> && is_floating(V::element)) f(v.handle);
    });
  }
}

template <class Arg>
constexpr int differentiated_count() {
  std::remove_cvref_t<Arg> arg{};
  int n = 0;
  visit_differentiated(arg, [&](auto&) { ++n; });
  return n;
}

template <class Loss>
constexpr message loss_fault() {
  if constexpr (requires { std::tuple_size<Loss>::value; }) return message::grad_pair;
  else if constexpr (!Expr<Loss>) return message::grad_not_scalar;
  else if constexpr (Loss::rank != 0) return message::grad_not_scalar;
  else if constexpr (!is_floating(Loss::type.type)) return message::grad_not_float;
  else return message::none;
}

/// `loss is float32[32@data]`.
template <text Role, class T>
constexpr text_buffer role_details() {
  text_buffer out;
  if constexpr (Expr<T>) out << Role.view() << " is " << type_text<T>();
  return out;
}

/// The type of the gradients with respect to an argument.
template <class Arg>
struct gradients_type : std::type_identity<Arg> {};
template <class Arg>
requires(!Variable<Arg> && (Module<Arg> || SelfVisiting<Arg>)) struct gradients_type<Arg>
    : std::type_identity<tessera::gradients<Arg>> {
};

/// The gradients of `loss`, put in the place of the parameters of a copy of `arg` as it was before the call.
template <class Arg, class Loss>
constexpr auto gradients_like(const Arg& before, const Loss& loss) {
  typename gradients_type<Arg>::type result{before};
  graph::graph* owner = loss.handle.owner;
  if (owner == nullptr) {
    visit_differentiated(result, [&](trace_handle& h) { owner = h.owner; });
    if (owner != nullptr) owner->outermost().report({message::module_unnamed, -1, loss.type});
    return result;
  }
  graph::graph& g = owner->active();
  graph::list<int> wrt;
  visit_differentiated(result, [&](trace_handle& h) { wrt.push_back(g.import_node(h.owner, h.id)); });
  const graph::list<int> ids = gradients(g, g.import_node(loss.handle.owner, loss.handle.id), wrt);
  std::size_t next = 0;
  visit_differentiated(result, [&](trace_handle& h) { h = {&g, ids[next++]}; });
  return result;
}

template <class F, bool Aux, bool WithValue>
struct differentiated {
  F function;

  template <class First, class... Rest>
  constexpr auto operator()(First&& first, Rest&&... rest) const {
    using Arg = std::remove_cvref_t<First>;
    if constexpr (Poison<Arg>) {
      return nothing();
    } else if constexpr (differentiated_count<Arg>() == 0) {
      constexpr bool walked = ArrayLike<Arg> || Module<Arg> || SelfVisiting<Arg> || is_sequence<Arg> || Number<Arg>;
      constexpr message fault = walked ? message::grad_nothing : message::module_macro;
      diagnose(report<fault, [] { return role_details<"first argument", Arg>(); }>);
      return nothing();
    } else {
      const Arg before = first;
      auto result = function(std::forward<First>(first), std::forward<Rest>(rest)...);
      return finish(before, result);
    }
  }

 private:
  template <class Arg, class Result>
  static constexpr auto finish(const Arg& before, const Result& result) {
    if constexpr (Poison<Result>) {
      return nothing();
    } else if constexpr (Aux && !requires { result.first; }) {
      diagnose(report<message::grad_aux, [] { return role_details<"result", Result>(); }>);
      return nothing();
    } else {
      const auto& loss = loss_of(result);
      using Loss = std::remove_cvref_t<decltype(loss)>;
      if constexpr (Poison<Loss>) {
        return nothing();
      } else if constexpr (constexpr message fault = loss_fault<Loss>(); fault != message::none) {
        diagnose(report<fault, [] { return role_details<"loss", Loss>(); }>);
        return nothing();
      } else {
        return answer(result, gradients_like(before, loss));
      }
    }
  }

  template <class Result>
  static constexpr const auto& loss_of(const Result& result) {
    if constexpr (Aux) return result.first;
    else return result;
  }

  /// After an error: of the form the caller takes apart.
  static constexpr auto nothing() {
    if constexpr (Aux) return answer(std::pair(poison{}, poison{}), poison{});
    else return answer(poison{}, poison{});
  }

  template <class Value, class Grads>
  static constexpr auto answer(const Value& value, const Grads& grads) {
    if constexpr (WithValue) return value_with_gradients<Value, Grads>{value, grads};
    else if constexpr (Aux) return std::pair(grads, value.second);
    else return grads;
  }
};

}  // namespace transform

/// `auto [l, grads] = value_and_grad(loss)(model, x, y)`: calls loss(model, x, y), a scalar, and differentiates it with
/// respect to the parameters (kind `param`) of the first argument, or to the argument itself if it is an array or a tuple
/// of arrays. `grads` has the members of the first argument, each gradient its parameter's type. With `has_aux` the
/// function returns a pair (loss, aux) and `l` is that pair. Collectives: those of section "gradients" of the sharding
/// rules. Source: jax.value_and_grad.
template <class F>
constexpr auto value_and_grad(F function) {
  return transform::differentiated<F, false, true>{function};
}
template <class F>
constexpr auto value_and_grad(F function, has_aux_t) {
  return transform::differentiated<F, true, true>{function};
}

/// The gradients alone (with `has_aux` a pair: gradients, aux). Source: jax.grad.
template <class F>
constexpr auto grad(F function) {
  return transform::differentiated<F, false, false>{function};
}
template <class F>
constexpr auto grad(F function, has_aux_t) {
  return transform::differentiated<F, true, false>{function};
}

}  // namespace tessera
