// SPDX-License-Identifier: Apache-2.0
// Counter-based random bits: Threefry-2x32 keys, how they split, and the bits of element i of an array.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>

namespace tessera::random {

template <class T>
concept Seed = std::integral<T> && !std::same_as<T, bool>;

/// Two 32-bit words: a random key, and what the hash gives back. Usable as a template argument.
struct key {
  std::uint32_t hi = 0;
  std::uint32_t lo = 0;

  friend constexpr bool operator==(const key&, const key&) = default;
};

namespace detail {

struct threefry_state {
  std::uint32_t x0, x1;

  constexpr void round(int rotation) {
    x0 += x1;
    x1 = std::rotl(x1, rotation) ^ x0;
  }
  constexpr void even_rounds() { round(13), round(15), round(26), round(6); }
  constexpr void odd_rounds() { round(17), round(29), round(16), round(24); }
  constexpr void inject(std::uint32_t k0, std::uint32_t k1, std::uint32_t step) {
    x0 += k0;
    x1 += k1 + step;
  }
};

}  // namespace detail

/// The 20-round Threefry-2x32 hash of the counter (hi, lo) under key k. A pure function: two words in, two words out.
/// Source: J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011); JAX uses the same rounds.
constexpr key threefry2x32(key k, std::uint32_t hi, std::uint32_t lo) {
  const std::uint32_t k2 = k.hi ^ k.lo ^ 0x1BD11BDAU;
  detail::threefry_state s{hi + k.hi, lo + k.lo};
  s.even_rounds(), s.inject(k.lo, k2, 1);
  s.odd_rounds(), s.inject(k2, k.hi, 2);
  s.even_rounds(), s.inject(k.hi, k.lo, 3);
  s.odd_rounds(), s.inject(k.lo, k2, 4);
  s.even_rounds(), s.inject(k2, k.hi, 5);
  return {s.x0, s.x1};
}

/// The key of a seed: (high word, low word), so (0, seed) below 2^32, as `jax.random.key(seed)`. Wider seeds keep their
/// high word, as JAX does in its 64-bit mode. A negative seed raises value_error.
template <Seed T>
constexpr key make_key(T seed) {
  if constexpr (std::signed_integral<T>) {
    if (seed < 0) throw value_error("random::make_key: seed " + number_text(seed) + " is outside [0, 2^64)");
  }
  const auto wide = static_cast<std::uint64_t>(seed);
  return {static_cast<std::uint32_t>(wide >> 32), static_cast<std::uint32_t>(wide)};
}

/// Child i of `split(k, n)`, for any n > i.
constexpr key split_at(key k, std::uint64_t i) {
  return threefry2x32(k, static_cast<std::uint32_t>(i >> 32), static_cast<std::uint32_t>(i));
}

/// n independent keys, `auto [next, use] = split(k)`; child i does not depend on n. As `jax.random.split(k, n)`.
template <std::size_t N = 2>
constexpr std::array<key, N> split(key k) {
  std::array<key, N> children{};
  for (std::size_t i = 0; i < N; ++i) children[i] = split_at(k, i);
  return children;
}

constexpr std::vector<key> split(key k, std::size_t n) {
  std::vector<key> children(n);
  for (std::size_t i = 0; i < n; ++i) children[i] = split_at(k, i);
  return children;
}

/// The key that depends on k and on data. As `jax.random.fold_in(k, data)`.
constexpr key fold_in(key k, std::uint32_t data) { return threefry2x32(k, 0, data); }

/// The random bits of the element with row-major global index i of an array drawn from key k. They depend on nothing
/// else: not on the array's shape, nor on how it is cut up. As JAX's partitionable `jax.random.bits`.
constexpr std::uint32_t bits32_at(key k, std::uint64_t i) {
  const key word = split_at(k, i);
  return word.hi ^ word.lo;
}

constexpr std::uint64_t bits64_at(key k, std::uint64_t i) {
  const key word = split_at(k, i);
  return std::uint64_t{word.hi} << 32 | word.lo;
}

constexpr std::uint16_t bits16_at(key k, std::uint64_t i) { return static_cast<std::uint16_t>(bits32_at(k, i)); }

constexpr std::uint8_t bits8_at(key k, std::uint64_t i) { return static_cast<std::uint8_t>(bits32_at(k, i)); }

/// out[j] = bits32_at(k, first_index + j).
constexpr void fill_bits(std::span<std::uint32_t> out, key k, std::uint64_t first_index = 0) {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = bits32_at(k, first_index + j);
}

}  // namespace tessera::random
