// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#pragma once

#include <tessera/ops/convert.hpp>
#include <tessera/ops/options.hpp>
#include <tessera/sharding/matmul.hpp>

namespace tessera {

namespace ops {

template <class OutSpec>
inline constexpr auto matmul_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  return sharding::matmul(x[0], x[1], chosen_spec<OutSpec>(mesh).get(), mesh);
}};

inline constexpr auto write_matmul = [](const std::array<graph::value, 2>& x, const aval& type) {
  const int lhs = x[0].type().rank;
  const int rhs = x[1].type().rank;
  const sharding::dim_list order = sharding::matmul_order(lhs, rhs);
  aval product = type;
  for (int i = 0; i < type.rank; ++i) product.dims[sharding::dim_at(order, i)] = type.dims[i];
  return graph::transpose(graph::dot(x[0], x[1], sharding::matmul_dims(lhs, rhs), product), order);
};

}  // namespace ops

/// c[..., i, j] = sum over k of a[..., i, k] b[..., k, j]: (m, k) x (k, n), leading dimensions on one side, or equal
/// batch dimensions in front of both; a vector on either side has no m or no n. Result: batch, m as cut in a, n as cut
/// in b; the contracting dimension is uncut in both. Gradient: two products of the same kind. Saved for it: both
/// operands. Collectives: none forward; backward an all-reduce or a reduce-scatter over every axis that cuts a
/// dimension summed over. Source: jax.numpy.matmul.
template <ArrayLike A, ArrayLike B>
constexpr auto matmul(const A& a, const B& b, call_site where = call_site::current()) {
  return ops::apply<"matmul", ops::matmul_rule<void>>(ops::written_at{where, ops::write_matmul}, a, b);
}

/// The same with the cut of the result chosen: contracting dimensions may be cut, and what is needed to get there
/// (all-reduce, reduce-scatter or all-gather) is done; `out_sharding<P<..., unreduced<"x">>>` leaves the sum over x
/// undone.
template <ArrayLike A, ArrayLike B, class Spec>
constexpr auto matmul(const A& a, const B& b, out_sharding_t<Spec>, call_site where = call_site::current()) {
  return ops::apply<"matmul", ops::matmul_rule<Spec>>(ops::written_at{where, ops::write_matmul}, a, b);
}

/// The same in elements of type D: see preferred_element_type.
template <ArrayLike A, ArrayLike B, dtype D, OutSharding... Options>
constexpr auto matmul(const A& a, const B& b, preferred_element_type_t<D>, Options... options) {
  return ops::preferring<D>([&](const auto& x, const auto& y) { return matmul(x, y, options...); }, a, b);
}

}  // namespace tessera
