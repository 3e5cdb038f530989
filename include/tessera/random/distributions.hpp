// SPDX-License-Identifier: Apache-2.0
// Random numbers by element: each distribution is a function (key, row-major global index) -> value, so any part of an
// array can be drawn by itself and comes out the same on every mesh.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <type_traits>

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/random/erf.hpp>
#include <tessera/random/erf_inv.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera::random {

template <class T>
concept RandomReal = std::same_as<T, float> || std::same_as<T, double>;

template <class T>
concept RandomInteger = std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>;

namespace detail {

template <class T>
[[noreturn]] void throw_bad_range(const char* who, T lo, T hi, const char* rule) {
  throw value_error(std::string("random::") + who + ": range [" + number_text(lo) + ", " + number_text(hi) +
                    ") must be " + rule);
}

/// Uniform in [0, 1): the top bits as the fraction of a number in [1, 2), minus 1.
template <RandomReal T>
constexpr T unit_at(key k, std::uint64_t i) {
  if constexpr (std::same_as<T, float>) return std::bit_cast<float>(bits32_at(k, i) >> 9 | 0x3F800000U) - 1.0F;
  else return std::bit_cast<double>(bits64_at(k, i) >> 12 | 0x3FF0000000000000U) - 1.0;
}

template <RandomReal T>
struct scaled_unit {
  T lo, span;

  constexpr T operator()(key k, std::uint64_t i) const { return std::max(lo, unit_at<T>(k, i) * span + lo); }
};

}  // namespace detail

/// Uniform on [lo, hi): max(lo, u (hi - lo) + lo) with u on [0, 1). As `jax.random.uniform`.
/// Bounds that are not finite, lo > hi, or a hi - lo that overflows raise value_error.
template <RandomReal T>
class uniform_distribution {
 public:
  constexpr explicit uniform_distribution(T lo = 0, T hi = 1) : unit_{lo, hi - lo} {
    constexpr T largest = std::numeric_limits<T>::max();
    if (!(lo >= -largest && hi <= largest && lo <= hi && hi - lo <= largest))
      detail::throw_bad_range("uniform", lo, hi, "finite, ascending and of finite width");
  }
  constexpr T operator()(key k, std::uint64_t i) const { return unit_(k, i); }

 private:
  detail::scaled_unit<T> unit_;
};

/// Standard normal: sqrt(2) erf_inv(u), u uniform on [nextafter(-1, 0), 1). As `jax.random.normal`.
template <RandomReal T>
class normal_distribution {
 public:
  T operator()(key k, std::uint64_t i) const { return from_unit(unit(k, i)); }

  static constexpr T lowest = -1 + std::numeric_limits<T>::epsilon() / 2;
  static constexpr detail::scaled_unit<T> unit{lowest, 1 - lowest};
  static T from_unit(T u) { return std::numbers::sqrt2_v<T> * detail::erf_inv_inside(u); }
};

/// Standard normal conditioned on (lo, hi): sqrt(2) erf_inv(u), u uniform on [erf(lo / sqrt 2), erf(hi / sqrt 2)),
/// clamped inside the bounds. As `jax.random.truncated_normal`. Bounds that are not finite or not ascending raise
/// value_error; so do bounds so far out on one side that both error functions round to the same value.
template <RandomReal T>
class truncated_normal_distribution {
 public:
  constexpr explicit truncated_normal_distribution(T lo = -2, T hi = 2)
      : unit{}, least_(detail::next_towards(lo, hi)), most_(detail::next_towards(hi, lo)) {
    constexpr T largest = std::numeric_limits<T>::max();
    const T from = detail::erf_of(lo / std::numbers::sqrt2_v<T>), to = detail::erf_of(hi / std::numbers::sqrt2_v<T>);
    if (!(from < to && lo >= -largest && hi <= largest))
      detail::throw_bad_range("truncated_normal", lo, hi, "finite and ascending, with normal mass inside");
    unit = {from, to - from};
  }
  T operator()(key k, std::uint64_t i) const { return from_unit(unit(k, i)); }

  detail::scaled_unit<T> unit;
  T from_unit(T u) const { return std::clamp(std::numbers::sqrt2_v<T> * erf_inv(u), least_, most_); }
  constexpr T least() const { return least_; }
  constexpr T most() const { return most_; }

 private:
  T least_, most_;
};

/// True with probability p: u < float(p), u uniform on [0, 1) in float. As `jax.random.bernoulli`.
/// A p outside [0, 1] raises value_error.
class bernoulli_distribution {
 public:
  constexpr explicit bernoulli_distribution(double p = 0.5) : p_(static_cast<float>(p)) {
    if (!(p >= 0 && p <= 1)) throw value_error("random::bernoulli: p = " + number_text(p) + " is outside [0, 1]");
  }
  constexpr bool operator()(key k, std::uint64_t i) const { return detail::unit_at<float>(k, i) < p_; }

 private:
  float p_;
};

/// An integer in [lo, hi), nearly uniform: two words h, l of the type's width, from the two children of the key, give
/// lo + ((h mod s) m + l mod s) mod s with s = hi - lo and m = 2^width mod s, all wrapping. As `jax.random.randint`.
/// lo >= hi raises value_error.
template <RandomInteger T>
class integers {
 public:
  constexpr integers(T lo, T hi) : lo_(static_cast<word>(lo)), span_(static_cast<word>(static_cast<word>(hi) - lo_)) {
    if (lo >= hi) detail::throw_bad_range("integers", lo, hi, "ascending and not empty");
    const word half = static_cast<word>((word{1} << std::numeric_limits<word>::digits / 2) % span_);
    multiplier_ = static_cast<word>(half * half) % span_;
  }
  constexpr T operator()(key k, std::uint64_t i) const {
    const word high = word_at(split_at(k, 0), i) % span_, low = word_at(split_at(k, 1), i) % span_;
    return static_cast<T>(lo_ + (high * multiplier_ + low) % span_);
  }

 private:
  using word = std::make_unsigned_t<T>;
  static constexpr word word_at(key k, std::uint64_t i) {
    if constexpr (sizeof(word) == 4) return bits32_at(k, i);
    else return bits64_at(k, i);
  }
  word lo_, span_, multiplier_ = 0;
};

/// out[j] = distribution(k, first_index + j): a shard whose elements are consecutive fills itself from its first index.
template <class T, class Distribution>
requires std::is_invocable_r_v<T, const Distribution&, key, std::uint64_t>
constexpr void fill(std::span<T> out, key k, const Distribution& distribution, std::uint64_t first_index = 0) {
  if constexpr (requires { distribution.from_unit(T{}); }) {
    // Two passes: the hash vectorises only where no logarithm stands in its loop.
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = distribution.unit(k, first_index + j);
    for (T& element : out) element = distribution.from_unit(element);
  } else {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = distribution(k, first_index + j);
  }
}

template <RandomReal T>
constexpr T uniform_at(key k, std::uint64_t i, T lo = 0, T hi = 1) {
  return uniform_distribution<T>(lo, hi)(k, i);
}

template <RandomReal T>
T normal_at(key k, std::uint64_t i) {
  return normal_distribution<T>()(k, i);
}

template <RandomReal T>
T truncated_normal_at(key k, std::uint64_t i, T lo = -2, T hi = 2) {
  return truncated_normal_distribution<T>(lo, hi)(k, i);
}

constexpr bool bernoulli_at(key k, std::uint64_t i, double p = 0.5) { return bernoulli_distribution(p)(k, i); }

template <RandomInteger T>
constexpr T randint_at(key k, std::uint64_t i, T lo, T hi) {
  return integers<T>(lo, hi)(k, i);
}

template <RandomReal T>
constexpr void fill_uniform(std::span<T> out, key k, std::uint64_t first_index = 0, T lo = 0, T hi = 1) {
  fill(out, k, uniform_distribution<T>(lo, hi), first_index);
}

template <RandomReal T>
void fill_normal(std::span<T> out, key k, std::uint64_t first_index = 0) {
  fill(out, k, normal_distribution<T>(), first_index);
}

template <RandomReal T>
void fill_truncated_normal(std::span<T> out, key k, std::uint64_t first_index = 0, T lo = -2, T hi = 2) {
  fill(out, k, truncated_normal_distribution<T>(lo, hi), first_index);
}

template <class T>
constexpr void fill_bernoulli(std::span<T> out, key k, std::uint64_t first_index = 0, double p = 0.5) {
  fill(out, k, bernoulli_distribution(p), first_index);
}

template <RandomInteger T>
constexpr void fill_randint(std::span<T> out, key k, std::uint64_t first_index, T lo, T hi) {
  fill(out, k, integers<T>(lo, hi), first_index);
}

}  // namespace tessera::random
