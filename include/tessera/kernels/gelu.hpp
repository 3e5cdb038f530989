// SPDX-License-Identifier: Apache-2.0
// The tanh form of gelu and its derivative, of one element and of vectors.
#pragma once

#include <tessera/kernels/arch/fma.hpp>
#include <tessera/kernels/functions.hpp>

#include <cmath>
#include <numbers>

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

/// What gelu and its derivative have in common; a kernel that needs both computes it once.
template <class T>
struct gelu_parts {
  using batch = xsimd::batch<T>;

  batch x, size;  ///< |x|, kept within the last one that counts
  batch rest;     ///< 1 - s(|z|)

  [[gnu::always_inline]] explicit gelu_parts(const batch& at)
      : x(at), size(xsimd::min(batch(gelu_form::last<T>), xsimd::abs(at))) {
    const sum_of_two power = decayed();
    const batch divisor = batch(T(1)) + power.high;
    const batch lost = power.high - (divisor - batch(T(1))) + power.low;
    const batch inverse = detail::rough_inverse(divisor);
    const batch quotient = power.high * inverse;
    const batch left = detail::fnma(quotient, lost, detail::fnma(quotient, divisor, power.high) + power.low);
    rest = detail::fma(left, inverse, quotient);
  }

  /// x (1 - rest), or x rest where x is negative.
  [[gnu::always_inline]] batch value() const { return detail::fnma(size, rest, xsimd::max(batch(-T(0)), x)); }

  [[gnu::always_inline]] batch slope() const {
    constexpr double scale = gelu_form::scale;
    const batch inner = detail::fma(size * size, batch(T(3 * gelu_form::cubic * scale)), batch(T(scale)));
    const batch below = detail::fnma(size * inner, detail::fnma(rest, rest, rest), rest);
    return xsimd::select(x < batch(T(0)), below, batch(T(1)) - below);
  }

 private:
  /// A number and what its rounding left.
  struct sum_of_two {
    batch high, low;
  };

  /// exp(-|z|). Of float32 it is 2^y with y = c |x| (x^2 + k), to about twice the digits, since the power makes a
  /// relative error of y's absolute one. Without its last digits k differs by a number of type T from what it is added
  /// to.
  [[gnu::always_inline]] sum_of_two decayed() const {
    using detail::fma, detail::fms;
    constexpr double c = -gelu_form::scale * gelu_form::cubic * (sizeof(T) == 4 ? std::numbers::log2e : 1);
    constexpr double k = 1 / gelu_form::cubic, short_k = 22.363861083984375;
    const batch inner = fma(size, size, high(short_k));
    const batch inner_rest = fms(size, size, inner - high(short_k)) + high(k - short_k);
    const batch outer = high(c) * size;
    const batch outer_rest = fma(low(c), size, fms(high(c), size, outer));
    const batch y = outer * inner, y_rest = fma(outer, inner_rest, outer_rest * inner);
    if constexpr (sizeof(T) == 4) {
      const batch n = xsimd::nearbyint(y), r = fms(outer, inner, n);
      batch q(0x1.41fbbcp-13f);
      for (float each : {0x1.5f3e54p-10f, 0x1.3b2d4cp-7f, 0x1.c6aee8p-5f, 0x1.ebfbdcp-3f, 0x1.62e43p-1f})
        q = fma(q, r, batch(each));
      const batch scale = detail::scaled(batch(1.0f), n), bent = q * r;
      const batch power = fma(scale, bent, scale);
      const batch lost = fma(scale, fms(q, r, bent), fma(scale, bent, scale - power));
      return {power, fma(power, high(std::numbers::ln2) * y_rest, lost)};
    } else {
      const batch end(T(-708));
      const batch power = xsimd::exp(xsimd::select(y < end, end, y));
      return {xsimd::select(y < end, batch(T(0)), fma(power, fms(outer, inner, y) + y_rest, power)), batch(T(0))};
    }
  }
  static batch high(double c) { return batch(static_cast<T>(c)); }
  /// What that lacks of c.
  static batch low(double c) { return batch(static_cast<T>(c - static_cast<double>(static_cast<T>(c)))); }
};

/// gelu(x); -infinity gives 0. Of float32, where multiply-adds are fused, within 1.9 units in the last place; left of
/// -9.8, where it is less than 2^-118, within 1.8 units or 2^-145.
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
