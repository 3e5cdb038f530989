// SPDX-License-Identifier: Apache-2.0
// The error function and the next number, in constant expressions too: bounds of distributions are known when a step is
// traced.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <type_traits>

namespace tessera::random::detail {

/// exp(-y) for 0 <= y <= 50: exp(-y / 64), by its series, squared six times.
constexpr long double exp_minus(long double y) {
  const long double part = y / 64;
  long double power = 0;
  long double term = 1;
  for (int n = 1; n < 30; ++n) {
    power += term;
    term *= -part / n;
  }
  for (int i = 0; i < 6; ++i) power *= power;
  return power;
}

/// erf(x), correctly rounded or nearly so: 2/sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...); 1 beyond 6.
template <std::floating_point T>
constexpr T erf_of(T x) {
  if (x != x) return x;
  if (x > 6) return 1;
  if (x < -6) return -1;
  const auto wide = static_cast<long double>(x);
  long double sum = 0;
  long double term = wide;
  for (int n = 1; n < 200; ++n) {
    sum += term;
    term *= 2 * wide * wide / (2 * n + 1);
  }
  return static_cast<T>(2 * std::numbers::inv_sqrtpi_v<long double> * exp_minus(wide * wide) * sum);
}

/// The number next to finite x on the way to `to`.
template <std::floating_point T>
constexpr T next_towards(T x, T to) {
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if (x == to) return to;
  const word bits = std::bit_cast<word>(x);
  if (x == 0) return to > 0 ? std::bit_cast<T>(word{1}) : -std::bit_cast<T>(word{1});
  return std::bit_cast<T>((x > 0) == (to > x) ? bits + 1 : bits - 1);
}

}  // namespace tessera::random::detail
