// SPDX-License-Identifier: Apache-2.0
// More functions of elements: powers and logarithms, angles, rounding, remainders, tests for NaN and infinities.
#pragma once

#include <tessera/ops/elementwise.hpp>

#include <limits>

namespace tessera {

/// Each takes a floating-point array and gives one of the same type. Gradients are those of calculus; at the ends of
/// asin, acos and erf_inv they are infinite. No collective. Source: jax.numpy.
inline constexpr ops::unary_operation<"expm1", graph::op::expm1, ops::wants::floats> expm1{};
inline constexpr ops::unary_operation<"exp2", graph::op::exp2, ops::wants::floats> exp2{};
inline constexpr ops::unary_operation<"log2", graph::op::log2, ops::wants::floats> log2{};
inline constexpr ops::unary_operation<"erf_inv", graph::op::erf_inv, ops::wants::floats> erf_inv{};
inline constexpr ops::unary_operation<"tan", graph::op::tan, ops::wants::floats> tan{};
inline constexpr ops::unary_operation<"asin", graph::op::asin, ops::wants::floats> asin{};
inline constexpr ops::unary_operation<"acos", graph::op::acos, ops::wants::floats> acos{};
inline constexpr ops::unary_operation<"atan", graph::op::atan, ops::wants::floats> atan{};
inline constexpr ops::unary_operation<"sinh", graph::op::sinh, ops::wants::floats> sinh{};
inline constexpr ops::unary_operation<"cosh", graph::op::cosh, ops::wants::floats> cosh{};

/// The whole number next below, next above, nearest (halves go to the even one), next towards 0. Gradient 0.
inline constexpr ops::unary_operation<"floor", graph::op::floor, ops::wants::floats> floor{};
inline constexpr ops::unary_operation<"ceil", graph::op::ceil, ops::wants::floats> ceil{};
inline constexpr ops::unary_operation<"round", graph::op::round, ops::wants::floats> round{};
inline constexpr ops::unary_operation<"trunc", graph::op::trunc, ops::wants::floats> trunc{};

/// The angle of the point (x, y), from -pi to pi: `atan2(y, x)`. Gradient (x, -y) / (x^2 + y^2), and 0 at the origin.
inline constexpr ops::binary_operation<"atan2", graph::op::atan2, ops::wants::floats> atan2{};

/// `remainder(x, y)` has the sign of y and `floor_divide(x, y)` is the quotient rounded down, so that
/// x = y floor_divide(x, y) + remainder(x, y), as in Python; also `x % y`. Of integers both are 0 where y is 0, and the
/// least int32 divided by -1 wraps around; of floating-point numbers x % 0 is NaN and floor_divide(x, 0) is x / 0. The
/// remainder's gradient is 1 to x, -floor_divide(x, y) to y; the quotient has none. Source: jax.numpy.
inline constexpr ops::binary_operation<"remainder", graph::op::mod, ops::wants::numbers> remainder{};
inline constexpr ops::binary_operation<"floor_divide", graph::op::floor_div, ops::wants::numbers> floor_divide{};

template <class X, class Y>
requires OperatorOperands<X, Y>
constexpr auto operator%(const X& x, const Y& y) { return remainder(x, y); }

namespace ops {

inline constexpr auto float_test_rule = [](std::span<const aval> x, const mesh_value&) {
  if (const message why = unmet(wants::floats, x[0].type); why != message::none) return refuse(why);
  ruling ruled{x[0]};
  ruled.result.type = dtype::bool_;
  return ruled;
};

/// size(x) compared with infinity.
template <op Compare>
inline constexpr auto write_size_test = [](const std::array<graph::value, 1>& x, const aval&) {
  const graph::value infinity = graph::number_like(x[0], std::numeric_limits<double>::infinity());
  return graph::binary(Compare, graph::unary(op::abs, x[0]), infinity);
};

}  // namespace ops

/// bool: whether an element of a floating-point array is NaN, infinite, or neither.
inline constexpr auto isnan = [](const ArrayLike auto& x) {
  return ops::apply<"isnan", ops::float_test_rule>(
      [](const std::array<graph::value, 1>& v, const aval&) { return graph::binary(graph::op::ne, v[0], v[0]); }, x);
};
inline constexpr auto isinf = [](const ArrayLike auto& x) {
  return ops::apply<"isinf", ops::float_test_rule>(ops::write_size_test<graph::op::eq>, x);
};
inline constexpr auto isfinite = [](const ArrayLike auto& x) {
  return ops::apply<"isfinite", ops::float_test_rule>(ops::write_size_test<graph::op::lt>, x);
};

/// 1 / x.
inline constexpr auto reciprocal = [](const ArrayLike auto& x) { return 1.0 / x; };

namespace ops {

/// max + log(1 + exp(-|a - b|)); equal infinities are told apart, as their difference is NaN.
inline constexpr auto write_logaddexp = [](const std::array<graph::value, 2>& x, const aval&) {
  const graph::value same = graph::binary(op::eq, x[0], x[1]);
  const graph::value zero = graph::number_like(x[0], 0);
  const graph::value a = graph::select(same, zero, x[0]);
  const graph::value b = graph::select(same, zero, x[1]);
  const graph::value apart = graph::unary(op::abs, a - b);
  const graph::value more = graph::unary(op::log1p, graph::unary(op::exp, -apart));
  const graph::value added = graph::select(same, graph::number_like(x[0], 0.693147180559945309417), more);
  return graph::binary(op::max, x[0], x[1]) + added;
};

}  // namespace ops

/// log(exp(x) + exp(y)) without overflow, also for infinities. Gradient: exp(x - result), exp(y - result), half each
/// where x = y. Extents and cuts as in `add`. Source: jax.numpy.logaddexp.
struct logaddexp_operation {
  template <Operand X, Operand Y>
  requires(ArrayLike<X> || ArrayLike<Y>) constexpr auto operator()(const X& x, const Y& y) const {
    return ops::apply<"logaddexp", ops::elementwise_rule<graph::op::add, ops::wants::floats>>(ops::write_logaddexp, x,
                                                                                              y);
  }
};
inline constexpr logaddexp_operation logaddexp{};

}  // namespace tessera
