// SPDX-License-Identifier: Apache-2.0
// Instruction lists that are interpreted with the functions of the fused kernels, so that every bit is theirs.
#pragma once

#include <tessera/kernels/lanes.hpp>
#include <tessera/kernels/naive_fused.hpp>

#include <type_traits>

namespace tessera::kernels {

namespace detail {

/// Whether vector functions compile: xsimd 8.1 hands its own vectors to what are macros with casts in AVX-512 code that
/// is not optimised.
#if defined(__AVX512BW__) && !defined(__OPTIMIZE__)
inline constexpr bool has_lane_functions = false;
#else
inline constexpr bool has_lane_functions = true;
#endif

template <graph::op Code, dtype D>
double lane_of(double x) {
  using batch = xsimd::batch<storage_t<D>>;
  return static_cast<double>(
      vector_lanes<storage_t<D>>::template unary<Code, D>(batch(static_cast<storage_t<D>>(x))).get(0));
}
template <graph::op Code, dtype D>
double lane_of(double a, double b) {
  using batch = xsimd::batch<storage_t<D>>;
  return static_cast<double>(vector_lanes<storage_t<D>>::template binary<Code, D>(batch(static_cast<storage_t<D>>(a)),
                                                                                  batch(static_cast<storage_t<D>>(b)))
                                 .get(0));
}

template <dtype D>
double lane_function(graph::op code, double x) {
  using graph::op;
  switch (code) {
    case op::rsqrt: return lane_of<op::rsqrt, D>(x);
    case op::exp: return lane_of<op::exp, D>(x);
    case op::log: return lane_of<op::log, D>(x);
    case op::log1p: return lane_of<op::log1p, D>(x);
    case op::tanh: return lane_of<op::tanh, D>(x);
    case op::logistic: return lane_of<op::logistic, D>(x);
    case op::gelu: return lane_of<op::gelu, D>(x);
    case op::gelu_slope: return lane_of<op::gelu_slope, D>(x);
    case op::sin: return lane_of<op::sin, D>(x);
    case op::cos: return lane_of<op::cos, D>(x);
    case op::erf: return lane_of<op::erf, D>(x);
    case op::expm1: return lane_of<op::expm1, D>(x);
    case op::exp2: return lane_of<op::exp2, D>(x);
    case op::log2: return lane_of<op::log2, D>(x);
    case op::tan: return lane_of<op::tan, D>(x);
    case op::asin: return lane_of<op::asin, D>(x);
    case op::acos: return lane_of<op::acos, D>(x);
    case op::atan: return lane_of<op::atan, D>(x);
    case op::sinh: return lane_of<op::sinh, D>(x);
    case op::cosh: return lane_of<op::cosh, D>(x);
    default: return naive::unary(code, x);
  }
}
template <dtype D>
double lane_function(graph::op code, double a, double b) {
  using graph::op;
  switch (code) {
    case op::pow: return lane_of<op::pow, D>(a, b);
    case op::atan2: return lane_of<op::atan2, D>(a, b);
    case op::mod: return lane_of<op::mod, D>(a, b);
    case op::floor_div: return lane_of<op::floor_div, D>(a, b);
    default: return naive::binary(code, a, b);
  }
}

}  // namespace detail

/// Functions of one floating-point element as a lane of a vector computes them; of other types as naive::fused has
/// them. What is not rounded (comparisons, extrema) or rounded once (+, -, *, /, sqrt) is the same in both.
struct interpreted_functions {
  template <class Number>
  static double unary(graph::op code, Number x, dtype d) {
    if constexpr (detail::has_lane_functions) {
      if (accumulator(d) == dtype::f32) return detail::lane_function<f32>(code, x);
      if (d == dtype::f64) return detail::lane_function<f64>(code, x);
    }
    return naive::unary(code, x);
  }
  template <class Number>
  static double binary(graph::op code, Number a, Number b, dtype d) {
    if constexpr (detail::has_lane_functions) {
      if (accumulator(d) == dtype::f32) return detail::lane_function<f32>(code, a, b);
      if (d == dtype::f64) return detail::lane_function<f64>(code, a, b);
    }
    return naive::binary(code, a, b);
  }
};

}  // namespace tessera::kernels
