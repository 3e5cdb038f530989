// SPDX-License-Identifier: Apache-2.0
// What optimisers are made of: pure updates of lists of gradients, with state that mirrors a model's variables.
#pragma once

#include <tessera/graph/value.hpp>
#include <tessera/optim/arguments.hpp>
#include <tessera/optim/state.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera::optim {

/// One value a parameter, in the order of the model's variables.
using values = graph::list<graph::value>;

constexpr graph::value value_of(const auto& variable) { return graph::seen(variable.handle.owner, variable.handle.id); }

/// The variables of an object as values.
template <class T>
constexpr values values_of(const T& object) {
  values list;
  visit_variables(object, [&](const auto& v) { list.push_back(value_of(v)); });
  return list;
}

template <class T>
constexpr void assign(T& object, const values& list) {
  std::size_t next = 0;
  visit_variables(object, [&](auto& v) {
    v.handle.become(list[next].owner, list[next].id);
    ++next;
  });
}

constexpr void assign_one(auto& variable, graph::value v) { variable.handle.become(v.owner, v.id); }

/// A count of steps.
using counter = nn::variable<nn::optimizer_state, dtype::i32, shape<>>;

/// The count plus 1, as float32; the count goes up.
constexpr graph::value count_up(counter& count) {
  const graph::value next = value_of(count) + 1.0;
  assign_one(count, next);
  return graph::convert(next, dtype::f32);
}

/// The count as float32.
constexpr graph::value count_of(const counter& count) { return graph::convert(value_of(count), dtype::f32); }

/// A number that a state holds.
using number_variable = nn::variable<nn::optimizer_state, dtype::f32, shape<>>;

/// A transformation is copied into an optimiser, with hyperparameters that a step sees as arguments. It has
///   template <class Model, class Wrt> using state = ...;       variables, which start as zeros
///   update(values& updates, const values& params, State&)      new updates, and state; in a trace
/// and, where its state starts otherwise,
///   start(State&, std::span<const runtime::storage_ptr>)       fills it, given the memory of the parameters.
template <class T, class State>
void start_state(const T& transformation, State& state, std::span<const runtime::storage_ptr> params) {
  if constexpr (requires { transformation.start(state, params); }) transformation.start(state, params);
}

/// The same number in all elements of a state's arrays.
void fill_array(runtime::storage& array, double number);
template <class State>
void fill_arrays(State& state, double number) {
  visit_variables(state, [&](auto& v) { fill_array(*v.data, number); });
}

/// An array's elements in another one of its shape, cut as it may be, of its element type or a wider one.
void copy_array(runtime::storage& to, const runtime::storage& from);
template <class State>
void copy_arrays(State& state, std::span<const runtime::storage_ptr> from) {
  std::size_t next = 0;
  visit_variables(state, [&](auto& v) { copy_array(*v.data, *from[next++]); });
}

/// Several transformations, each fed what the one before gives.
template <class... Ts>
struct chained {
  std::tuple<Ts...> parts;

  template <class Model, class Wrt>
  using state = std::tuple<typename Ts::template state<Model, Wrt>...>;

  TESSERA_MODULE(chained, parts)

  template <class State>
  constexpr void update(values& updates, const values& params, State& states) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(parts).update(updates, params, std::get<I>(states)), ...);
    }
    (std::index_sequence_for<Ts...>{});
  }

  template <class State>
  void start(State& states, std::span<const runtime::storage_ptr> params) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (start_state(std::get<I>(parts), std::get<I>(states), params), ...);
    }
    (std::index_sequence_for<Ts...>{});
  }
};

/// `chain(clip_by_global_norm(1.0), adamw(1e-3))`. Source: optax.chain.
template <class... Ts>
chained<Ts...> chain(Ts... parts) {
  return {{std::move(parts)...}};
}

/// `number` of the type of `like`, which is an array or a scalar.
constexpr graph::value number_for(graph::value like, graph::value number) {
  return graph::convert(number, like.type().type);
}

/// `v` in the element type of `other` if that is wider.
constexpr graph::value widened(graph::value v, graph::value other) {
  const dtype to = other.type().type;
  return info(to).size > info(v.type().type).size ? graph::convert(v, to) : v;
}

/// b m + (1 - b) x, in the wider element type of the two; `rest` is 1 - b.
constexpr graph::value moving_average(graph::value m, graph::value x, graph::value b, graph::value rest) {
  const graph::value wide = widened(m, x);
  return number_for(wide, b) * wide + number_for(wide, rest) * widened(x, wide);
}

/// `v` in the element type of the state that holds it.
constexpr graph::value stored(graph::value v, graph::value held) { return graph::convert(v, held.type().type); }

/// Arithmetic on values, by short names.
namespace value_math {

using graph::op;
using graph::value;

constexpr value sqrt(value x) { return graph::unary(op::sqrt, x); }
constexpr value rsqrt(value x) { return graph::unary(op::rsqrt, x); }
constexpr value square(value x) { return graph::unary(op::square, x); }
constexpr value abs(value x) { return graph::unary(op::abs, x); }
constexpr value sign(value x) { return graph::unary(op::sign, x); }
constexpr value power(value x, value y) { return graph::binary(op::pow, x, y); }
constexpr value maximum(value x, value y) { return graph::binary(op::max, x, y); }
constexpr value minimum(value x, value y) { return graph::binary(op::min, x, y); }
constexpr value less(value x, value y) { return graph::binary(op::lt, x, y); }
constexpr value equal(value x, double y) { return graph::binary(op::eq, x, graph::number_like(x, y)); }
constexpr value both(value x, value y) { return graph::binary(op::logical_and, x, y); }
constexpr value either(value x, value y) { return graph::binary(op::logical_or, x, y); }
constexpr value mean(value x) { return graph::sum(x) / static_cast<double>(x.type().size()); }
constexpr value norm(value x) { return sqrt(graph::sum(square(x))); }
constexpr value mean_square(value x) { return mean(square(x)); }

/// 1 / (1 - b^t)
constexpr value correction(value b, value t) { return 1.0 / (1.0 - power(b, t)); }

}  // namespace value_math

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED void fill_array(runtime::storage& array, double number) {
  const auto fill = [&]<class T>(T value) {
    const std::vector<T> host(static_cast<std::size_t>(array.type.bytes()) / sizeof(T), value);
    runtime::copy_from_host(array, host.data());
  };
  if (array.type.type == dtype::f32) fill(static_cast<float>(number));
  if (array.type.type == dtype::f64) fill(number);
  if (array.type.type == dtype::i32) fill(static_cast<std::int32_t>(number));
  if (array.type.type == dtype::bf16) fill(bfloat16(number));
  if (array.type.type == dtype::f16) fill(float16(number));
}

TESSERA_COMPILED void copy_array(runtime::storage& to, const runtime::storage& from) {
  std::vector<std::byte> host(static_cast<std::size_t>(from.type.bytes()));
  runtime::copy_to_host(from, host.data());
  if (to.type.type == from.type.type) {
    runtime::copy_from_host(to, host.data());
    return;
  }
  const auto widen = [&]<class From, class To>(From, To) {
    if (from.type.type != dtype_of<From> || to.type.type != dtype_of<To>) return false;
    std::vector<From> narrow(host.size() / sizeof(From));
    std::memcpy(narrow.data(), host.data(), host.size());
    std::vector<To> wide;
    for (const From x : narrow) wide.push_back(static_cast<To>(x));
    runtime::copy_from_host(to, wide.data());
    return true;
  };
  if (!(widen(float{}, double{}) || widen(bfloat16{}, float{}) || widen(float16{}, float{}) ||
        widen(bfloat16{}, double{}) || widen(float16{}, double{})))
    throw value_error("optim: a state of this element type cannot start as its parameter");
}

#endif

}  // namespace tessera::optim
