// SPDX-License-Identifier: Apache-2.0
// Derivatives of elementwise operations, and how a cotangent is summed over what was repeated.
#pragma once

#include <tessera/graph/value.hpp>
#include <tessera/transform/grad_layout.hpp>

#include <numbers>

namespace tessera::transform {

using graph::op;
using graph::value;

/// Which dimensions of a gradient of type `from` were repeated from `operand`.
constexpr sharding::dim_set repeated_dims(const aval& from, const aval& operand) {
  if (operand.rank == 0) return sharding::all_dims(from.rank);
  sharding::dim_set repeated = 0;
  for (int i = 0; i < operand.rank; ++i)
    if (operand.dims[i].extent == 1 && from.dims[i].extent != 1) repeated |= 1U << i;
  return repeated;
}

/// `ct` summed over what broadcasting repeated, with exactly the type that a gradient of the operand has. A broadcast
/// operand costs an all-reduce over the axes that cut the repeated dimensions, an uncut one zipped with a cut one an
/// all-gather. Only a scalar, which stands beside reduced arrays without being reduced, has its gradient reduced here;
/// any other rule must leave it unreduced where the operand is reduced, and the other way round.
constexpr value unbroadcast(value ct, const aval& operand) {
  aval wanted = cotangent_type(operand);
  wanted.type = ct.type().type;
  if (operand.rank != 0 && !(with_marks(wanted, ct.type()) == wanted))
    throw std::logic_error("the gradient of an operand is not unreduced and reduced where it has to be");
  const sharding::dim_set repeated = repeated_dims(ct.type(), operand);
  if (repeated == 0) return graph::reshard(ct, wanted);
  const spec_value cuts = graph::spec_of(with_marks(wanted, ct.type()));
  return graph::reshard(graph::reduce(op::reduce_sum, ct, repeated, operand.rank != 0, &cuts), wanted);
}

/// The second derivative of gelu(x) = x s(z), z = k (x + c x^3): s (1 - s) (2 z' + x (z'' + z'^2 (1 - 2 s))). Beyond 10
/// s is 0 or 1, so x is kept within.
constexpr value gelu_curvature(value x) {
  constexpr double k = 1.5957691216057308, c = 0.044715;
  const auto bound = [&](double end) { return graph::number_like(x, end); };
  const value below = graph::select(graph::binary(op::gt, x, bound(10)), bound(10), x);
  const value near = graph::select(graph::binary(op::lt, below, bound(-10)), bound(-10), below);
  const value square = near * near;
  const value s = graph::unary(op::logistic, near * (k * c * square + k));
  const value slope = 3 * k * c * square + k;
  return s * (1.0 - s) * (2.0 * slope + near * (6 * k * c * near + slope * slope * (1.0 - 2.0 * s)));
}

/// d(unary)/dx times ct, from the operand x and the result y.
constexpr value unary_cotangent(op code, value x, value y, value ct) {
  const auto zero = [&] { return graph::number_like(ct, 0); };
  switch (code) {
    case op::neg: return -ct;
    case op::abs: return ct * graph::unary(op::sign, x);
    case op::sign: return {};
    case op::square: return ct * (x * 2.0);
    case op::sqrt: return ct * (0.5 / y);
    case op::rsqrt: return ct * (-0.5 * (y / x));
    case op::exp: return ct * y;
    case op::log: return ct / x;
    case op::log1p: return ct / (x + 1.0);
    case op::tanh: return ct * ((1.0 - y) * (y + 1.0));
    case op::logistic: return ct * (y * (1.0 - y));
    case op::gelu: return ct * graph::unary(op::gelu_slope, x);
    case op::gelu_slope: return ct * gelu_curvature(x);
    case op::sin: return ct * graph::unary(op::cos, x);
    case op::cos: return -(ct * graph::unary(op::sin, x));
    case op::erf: return ct * (2.0 * std::numbers::inv_sqrtpi * graph::unary(op::exp, -graph::unary(op::square, x)));
    case op::relu: return graph::select(graph::binary(op::gt, x, graph::number_like(x, 0)), ct, zero());
    case op::expm1: return ct * (y + 1.0);
    case op::exp2: return ct * (y * std::numbers::ln2);
    case op::log2: return ct / (x * std::numbers::ln2);
    case op::erf_inv: return ct * (0.5 / std::numbers::inv_sqrtpi * graph::unary(op::exp, y * y));
    case op::tan: return ct * (y * y + 1.0);
    case op::asin: return ct * graph::unary(op::rsqrt, (1.0 - x) * (x + 1.0));
    case op::acos: return -(ct * graph::unary(op::rsqrt, (1.0 - x) * (x + 1.0)));
    case op::atan: return ct / (x * x + 1.0);
    case op::sinh: return ct * graph::unary(op::cosh, x);
    case op::cosh: return ct * graph::unary(op::sinh, x);
    case op::convert: return is_floating(x.type().type) ? graph::convert(ct, x.type().type) : value{};
    case op::copy:
    case op::name: return ct;
    default: return {};
  }
}

/// The share of ct that each operand of max or min gets: all of it where it wins, half where both are equal.
constexpr cotangents extremum_cotangents(op code, value a, value b, value ct) {
  const op wins = code == op::max ? op::gt : op::lt;
  const value half = ct * 0.5;
  const value zero = graph::number_like(ct, 0);
  const value tie = graph::binary(op::eq, a, b);
  const value to_a = graph::select(tie, half, graph::select(graph::binary(wins, a, b), ct, zero));
  const value to_b = graph::select(tie, half, graph::select(graph::binary(wins, b, a), ct, zero));
  return {{to_a, to_b}};
}

/// x^y: y x^(y-1) to x, x^y log x to y; 0 where x is 0, so that no edge gives NaN.
constexpr cotangents pow_cotangents(value x, value y, value result, value ct) {
  const value zero = graph::number_like(x, 0);
  const value one = graph::number_like(x, 1);
  const value flat = graph::binary(op::eq, y, zero);
  const value to_x = ct * graph::select(flat, zero, y * graph::binary(op::pow, x, graph::select(flat, one, y - one)));
  const value positive = graph::binary(op::gt, x, zero);
  const value to_y =
      ct * graph::select(positive, result * graph::unary(op::log, graph::select(positive, x, one)), zero);
  return {{to_x, to_y}};
}

/// The angle of (b, a): b / (a^2 + b^2) to a, -a / (a^2 + b^2) to b; 0 at the origin.
constexpr cotangents angle_cotangents(value a, value b, value ct) {
  const value zero = graph::number_like(a, 0);
  const value square = a * a + b * b;
  const value origin = graph::binary(op::eq, square, zero);
  const value share = graph::select(origin, zero, ct / graph::select(origin, graph::number_like(a, 1), square));
  return {{share * b, -(share * a)}};
}

constexpr cotangents binary_cotangents(op code, value a, value b, value y, value ct) {
  switch (code) {
    case op::add: return {{ct, ct}};
    case op::sub: return {{ct, -ct}};
    case op::mul: return {{ct * b, ct * a}};
    case op::div: return {{ct / b, -(ct * (y / b))}};
    case op::max:
    case op::min: return extremum_cotangents(code, a, b, ct);
    case op::pow: return pow_cotangents(a, b, y, ct);
    case op::atan2: return angle_cotangents(a, b, ct);
    case op::mod: return {{ct, -(ct * graph::binary(op::floor_div, a, b))}};
    default: return {};
  }
}

}  // namespace tessera::transform
