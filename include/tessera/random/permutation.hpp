// SPDX-License-Identifier: Apache-2.0
// A random order of 0 .. n-1, for shuffling a data set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera::random {

/// 0 .. n-1 in random order: ceil(3 ln n / ln(2^32 - 1)) rounds, each of which splits the key into (next key, subkey)
/// and stably sorts what there is by the 32-bit words of the subkey; repeated rounds make ties harmless.
/// n of 2^32 or more raises value_error. Source: `jax.random.permutation(key, n)`.
inline std::vector<std::uint32_t> permutation(key k, std::size_t n) {
  constexpr std::uint32_t largest_word = std::numeric_limits<std::uint32_t>::max();
  if (n > largest_word) throw value_error("random::permutation: n = " + number_text(n) + " is outside [0, 2^32)");
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  const double rounds =
      std::ceil(3 * std::log(static_cast<double>(std::max<std::size_t>(n, 1))) / std::log(double{largest_word}));
  std::vector<std::uint64_t> sorted(n);
  for (int round = 0; round < static_cast<int>(rounds); ++round) {
    const auto [next, subkey] = split(k);
    k = next;
    // The position in the low word makes equal random words keep their order.
    for (std::size_t i = 0; i < n; ++i) sorted[i] = std::uint64_t{bits32_at(subkey, i)} << 32 | i;
    std::sort(sorted.begin(), sorted.end());
    const std::vector<std::uint32_t> before = order;
    for (std::size_t i = 0; i < n; ++i) order[i] = before[static_cast<std::uint32_t>(sorted[i])];
  }
  return order;
}

}  // namespace tessera::random
