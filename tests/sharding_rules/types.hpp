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

/// A value of a shard_map body whose blocks come from an array outside: what it varies over cuts the first dimension
/// there.
constexpr ts::graph::value block_parameter(ts::graph::graph& g, const ts::aval& block) {
  ts::aval whole = block;
  whole.varying = 0;
  for (int axis = 0; axis < g.mesh.rank; ++axis)
    if (block.varying & ts::bit_of(axis)) {
      whole.dims[0].extent *= g.mesh.size(axis);
      whole.dims[0].axes = ts::axis_append(whole.dims[0].axes, axis);
    }
  return ts::graph::to_local({&g, g.add_parameter(whole)}, block);
}

/// What the transpose of an operation on blocks moves: the gradient of its operand, given that of its result.
template <const auto& F, class Array, class Outside>
constexpr auto moves_of_transpose() {
  ts::graph::graph g;
  g.mesh = Outside::value;
  const ts::graph::value x = block_parameter(g, Array::type);
  const int y = F(Array{{&g, x.id}}).handle.id;
  const ts::graph::value ct = block_parameter(g, ts::cotangent_type(g.type(y)));
  const ts::transform::seed seeds[] = {{y, ct.id}};
  const int wrt[] = {x.id};
  g.outputs = {{ts::transform::gradients(g, seeds, wrt)[0], -1}};
  return ts::analysis::summarise(ts::transform::lower(g), g.mesh).collectives;
}
