// SPDX-License-Identifier: Apache-2.0
// Traced arrays of any type, what a function gives for them and what it moves.
#pragma once

#include <tessera/analysis/lowered.hpp>
#include <tessera/ops.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <string_view>
#include <utility>

namespace ts = tessera;

/// The abstract value of a case's input: V, U, R are the sets of axes over which it varies, has a sum pending, or is
/// reduced.
template <ts::dtype D, class Shape, class Spec, class Mesh, ts::axis_set V, ts::axis_set U, ts::axis_set R>
constexpr ts::aval aval_of_input() {
  ts::aval a = ts::resolve<D, Shape, Spec, Mesh>().result;
  a.varying = V;
  a.unreduced = U;
  a.reduced = R;
  return a;
}
template <ts::dtype D, class Shape, class Spec, class Mesh, ts::axis_set V, ts::axis_set U, ts::axis_set R>
using array = ts::expr<aval_of_input<D, Shape, Spec, Mesh, V, U, R>(), Mesh>;

/// What a function gives for traced arrays.
template <const auto& F, class... Arrays>
using result_of = decltype(F(Arrays{}...));

template <class T>
constexpr void write_result(ts::text_buffer& out, const T*) {
  if constexpr (ts::Expr<T>) ts::write_aval(out, T::type, T::mesh_type::value);
  else if constexpr (ts::Poison<T>) out << "refused";
}
template <template <class...> class Tuple, class First, class... Rest>
constexpr void write_result(ts::text_buffer& out, const Tuple<First, Rest...>*) {
  write_result(out, static_cast<const First*>(nullptr));
  ((out << "; ", write_result(out, static_cast<const Rest*>(nullptr))), ...);
}

/// Whether a result, or several of them, has this type in print.
template <class Result>
constexpr bool prints(std::string_view wanted) {
  ts::text_buffer out;
  write_result(out, static_cast<const Result*>(nullptr));
  return out.view() == wanted;
}

/// The cotangent of a value.
template <class Array>
using cotangent_of = ts::expr<ts::cotangent_type(Array::type), typename Array::mesh_type>;

/// The tensor that a traced array stands for.
template <class Array>
struct tensor_of;
template <ts::aval Type, class Mesh>
struct tensor_of<ts::expr<Type, Mesh>> {
  template <std::size_t... D>
  static auto deduce(std::index_sequence<D...>)
      -> ts::tensor<Type.type, ts::shape<Type.dims[D].extent...>, ts::spec_type<Type, Mesh>, Mesh>;
  using type = decltype(deduce(std::make_index_sequence<static_cast<std::size_t>(Type.rank)>{}));
};

/// What a function moves.
template <const auto& F, class... Arrays>
constexpr auto collectives() {
  return ts::lowered<F, typename tensor_of<Arrays>::type...>::collectives();
}
