// SPDX-License-Identifier: Apache-2.0
// The tanh form of gelu and its derivative, of one element and of vectors.
#pragma once

#include <tessera/kernels/arch/fma.hpp>
#include <tessera/kernels/functions.hpp>

#include <cmath>

namespace tessera::kernels {

/// gelu(x) = x s(z) with s(z) = 1 / (1 + exp(-z)) and z = scale (x + cubic x^3), which is x/2 (1 + tanh(z/2)).
struct gelu_form {
  static constexpr double scale = 1.5957691216057308;  ///< 2 sqrt(2 / pi)
  static constexpr double cubic = 0.044715;
  /// Beyond this s(z) is 0 or 1 in float32 and float64; x is kept within, so that no cube overflows.
  template <class T>
  static constexpr T last = sizeof(T) == 4 ? T(10.7) : T(24);
};

namespace naive {

/// Of one element, -infinity giving 0.
inline double gelu(double x) {
  constexpr double last = gelu_form::last<double>;
  const double near = x > last ? last : x < -last ? -last : x;
  const double z = gelu_form::scale * (near + gelu_form::cubic * near * near * near);
  return (x > last ? x : near) / (1 + std::exp(-z));
}

inline double gelu_slope(double x) {
  constexpr double last = gelu_form::last<double>;
  const double near = x > last ? last : x < -last ? -last : x;
  const double z = gelu_form::scale * (near + gelu_form::cubic * near * near * near);
  const double slope = gelu_form::scale * (1 + 3 * gelu_form::cubic * near * near);
  const double s = 1 / (1 + std::exp(-z));
  return s + near * slope * s / (1 + std::exp(z));
}

}  // namespace naive

/// What gelu and its derivative have in common; a kernel that needs both computes it once. z is known to twice the
/// digits, since exp makes a relative error of its absolute one.
template <class T>
struct gelu_parts {
  using batch = xsimd::batch<T>;

  batch x, near, square;
  batch power, rest;       ///< exp(-|z|) and what its rounding left
  batch divisor, inverse;  ///< 1 + power, 1 / divisor
  xsimd::batch_bool<T> negative;

  [[gnu::always_inline]] explicit gelu_parts(const batch& at) : x(at) {
    const batch last(gelu_form::last<T>);
    near = xsimd::select(x > last, last, xsimd::select(x < -last, -last, x));
    negative = near < batch(T(0));
    square = near * near;
    set_power();
    divisor = batch(T(1)) + power;
    inverse = detail::inverse(divisor);
  }

  [[gnu::always_inline]] batch value() const {
    const batch one(T(1));
    const batch lost = power - (divisor - one) + rest;
    const batch dividend = xsimd::select(negative, power, one);
    const batch quotient = dividend * inverse;
    const batch left = detail::fnma(quotient, lost, detail::fnma(quotient, divisor, dividend));
    const batch all_left = xsimd::select(negative, left + rest, left);
    const batch factor = xsimd::select(x > near, x, near);
    return detail::fma(factor, quotient, near * inverse * all_left);
  }

  [[gnu::always_inline]] batch slope() const {
    const batch sigmoid = xsimd::select(negative, power * inverse, inverse);
    const batch inner = detail::fma(square, high(gelu_form::scale * 3 * gelu_form::cubic), high(gelu_form::scale));
    return detail::fma(near * inner, power * inverse * inverse, sigmoid);
  }

 private:
  static batch high(double c) { return batch(static_cast<T>(c)); }
  /// What that lacks of c.
  static batch low(double c) { return batch(static_cast<T>(c - static_cast<double>(static_cast<T>(c)))); }

  [[gnu::always_inline]] void set_power() {
    using detail::fma, detail::fms, detail::fnma;
    constexpr double scale = gelu_form::scale, cubic = scale * gelu_form::cubic;
    const batch bent = high(cubic) * square;
    const batch bent_rest =
        fma(high(cubic), fms(near, near, square), fma(low(cubic), square, fms(high(cubic), square, bent)));
    const batch inner = bent + high(scale);
    const batch part = inner - bent;
    const batch inner_rest = (bent - (inner - part)) + (high(scale) - part) + (bent_rest + low(scale));
    const batch depth = xsimd::abs(near) * inner;
    const batch depth_rest = fma(xsimd::abs(near), inner_rest, fms(xsimd::abs(near), inner, depth));
    if constexpr (sizeof(T) == 4) {
      const functions::exponential_parts e(batch(T(0)) - depth, batch(T(0)) - depth_rest);
      power = e.high, rest = e.low;
    } else {
      const batch end(T(708));
      power = xsimd::select(depth > end, batch(T(0)), xsimd::exp(batch(T(0)) - xsimd::select(depth > end, end, depth)));
      rest = batch(T(0)) - power * depth_rest;
    }
  }
};

/// gelu(x); -infinity gives 0. Of float32, where multiply-adds are fused, within 1.4 units in the last place; left of
/// -9.8, where it is less than 2^-118, within 1.6 units or 2^-145.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> gelu(const xsimd::batch<T>& x) {
  return gelu_parts<T>(x).value();
}

/// Its derivative, of float32 within 2^-22 (it goes through 0 near -0.75).
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> gelu_slope(const xsimd::batch<T>& x) {
  return gelu_parts<T>(x).slope();
}

}  // namespace tessera::kernels
