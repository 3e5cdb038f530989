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

/// An argument of value_and_grad and grad, behind the loss: gradients of a module's parameters that are reduced over
/// mesh axes are rounded to type D on each device, added up over the devices in it, and converted back. `sums_in<bf16>`
/// halves the bytes of that all-reduce.
template <dtype D>
struct sums_in_t {
  static constexpr dtype value = D;
};
template <dtype D>
inline constexpr sums_in_t<D> sums_in{};

/// Sums over devices are taken in the gradients' own types.
struct sums_as_they_are {};

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
  else if constexpr (Loss::type.marked()) return message::grad_not_reduced;
  else return message::none;
}

/// `loss is float32[32@data]`.
template <text Role, class T>
constexpr text_buffer role_details() {
  text_buffer out;
  if constexpr (Expr<T>) out << Role.view() << " is " << type_text<T>();
  return out;
}

/// The type of the gradients with respect to an argument: an array has that which a gradient of it has, a module's
/// variables have types of their own.
template <class Arg>
struct gradients_type : std::type_identity<Arg> {};
template <class Arg>
requires(!Variable<Arg> && (Module<Arg> || SelfVisiting<Arg>)) struct gradients_type<Arg>
    : std::type_identity<tessera::gradients<Arg>> {
};
template <aval Type, class Mesh>
requires(is_floating(Type.type)) struct gradients_type<expr<Type, Mesh>>
    : std::type_identity<expr<cotangent_type(Type), Mesh>> {
};
template <class... Parts>
struct gradients_type<std::tuple<Parts...>> : std::type_identity<std::tuple<typename gradients_type<Parts>::type...>> {
};
template <class Part, std::size_t N>
struct gradients_type<std::array<Part, N>> : std::type_identity<std::array<typename gradients_type<Part>::type, N>> {};

/// A gradient with its pending sums done, in type D if that is told.
template <class Sums>
constexpr graph::value reduced_gradient(graph::value gradient, const aval& wanted) {
  if constexpr (std::same_as<Sums, sums_as_they_are>) {
    return graph::reshard(gradient, wanted);
  } else {
    if (gradient.type().unreduced == 0 || info(Sums::value).size >= info(wanted.type).size)
      return graph::reshard(gradient, wanted);
    aval narrow = wanted;
    narrow.type = Sums::value;
    return graph::convert(graph::reshard(graph::convert(gradient, Sums::value), narrow), wanted.type);
  }
}

/// Whether an argument is a module, or has one, with a parameter that is reduced over an axis.
template <class Arg>
constexpr bool has_reduced_parameters() {
  if constexpr (Expr<Arg>) {
    return false;
  } else {
    bool found = false;
    const Arg arg{};
    visit_variables(arg, [&](const auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (std::same_as<typename V::variable_kind, nn::param>)
        found = found || has_mark<typename V::spec_type, axis_use::reduced>;
    });
    return found;
  }
}

/// Puts gradients in the place of parameters; what is still unreduced is reduced for a module's variables.
template <class Sums, class Arg>
constexpr auto gradients_in(const Arg& before, graph::graph& g, const graph::list<int>& wrt,
                            const graph::list<int>& ids, std::size_t& next) {
  if constexpr (Expr<Arg>) {
    if constexpr (is_floating(Arg::type.type)) return typename gradients_type<Arg>::type{{&g, ids[next++]}};
    else return before;
  } else if constexpr (is_sequence<Arg>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return typename gradients_type<Arg>::type{gradients_in<Sums>(std::get<I>(before), g, wrt, ids, next)...};
    }
    (std::make_index_sequence<std::tuple_size_v<Arg>>{});
  } else {
    typename gradients_type<Arg>::type result{before};
    visit_differentiated(result, [&](trace_handle& h) {
      const graph::value gradient{&g, ids[next]};
      h = {&g, reduced_gradient<Sums>(gradient, with_marks(gradient.type(), g.type(wrt[next]))).id};
      ++next;
    });
    return result;
  }
}

/// The gradients of `loss`, put in the place of the parameters of a copy of `arg` as it was before the call.
template <class Sums, class Arg, class Loss>
constexpr auto gradients_like(const Arg& before, const Loss& loss) {
  graph::graph* owner = loss.handle.owner;
  graph::list<int> wrt;
  Arg visited = before;
  std::size_t next = 0;
  if (owner == nullptr) {
    visit_differentiated(visited, [&](trace_handle& h) {
      owner = h.owner;
      wrt.push_back(h.id);
    });
    if (owner != nullptr) owner->outermost().report({message::module_unnamed, -1, loss.type});
    return gradients_in<Sums>(before, *owner, wrt, wrt, next);
  }
  graph::graph& g = owner->active();
  visit_differentiated(visited, [&](trace_handle& h) { wrt.push_back(g.import_node(h.owner, h.id)); });
  const graph::list<int> ids = gradients(g, g.import_node(loss.handle.owner, loss.handle.id), wrt);
  return gradients_in<Sums>(before, g, wrt, ids, next);
}

template <class F, bool Aux, bool WithValue, class Sums = sums_as_they_are>
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
    } else if constexpr (!std::same_as<Sums, sums_as_they_are> && !has_reduced_parameters<Arg>()) {
      diagnose(report<message::grad_sums, [] { return role_details<"first argument", Arg>(); }>);
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
        return answer(result, gradients_like<Sums>(before, loss));
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
/// respect to the parameters (kind `param`) of the first argument, or to the argument itself if it is an array or a
/// tuple of arrays. `grads` has the members of the first argument, each gradient its parameter's type; but the gradient
/// of an array that is reduced<"x"> is unreduced<"x"> and the other way round, while a module's reduced parameters have
/// theirs reduced, by one all-reduce each, however often they were used (`value_and_grad(loss, sums_in<bf16>)`: of half
/// the bytes). With `has_aux` the function returns a pair (loss, aux) and `l` is that pair. Collectives: those of
/// section "gradients" of the sharding rules. Source: jax.value_and_grad.
template <class F>
constexpr auto value_and_grad(F function) {
  return transform::differentiated<F, false, true>{function};
}
template <class F>
constexpr auto value_and_grad(F function, has_aux_t) {
  return transform::differentiated<F, true, true>{function};
}
template <class F, dtype D>
constexpr auto value_and_grad(F function, sums_in_t<D>) {
  return transform::differentiated<F, false, true, sums_in_t<D>>{function};
}
template <class F, dtype D>
constexpr auto value_and_grad(F function, has_aux_t, sums_in_t<D>) {
  return transform::differentiated<F, true, true, sums_in_t<D>>{function};
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
template <class F, dtype D>
constexpr auto grad(F function, sums_in_t<D>) {
  return transform::differentiated<F, false, false, sums_in_t<D>>{function};
}

}  // namespace tessera
