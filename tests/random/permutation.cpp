// SPDX-License-Identifier: Apache-2.0
#include <tessera/random/permutation.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace rnd = tessera::random;

namespace {

/// One round of the definition, sorting positions by (word, position).
std::vector<std::uint32_t> sorted_by_bits(const std::vector<std::uint32_t>& values, rnd::key subkey) {
  std::vector<std::size_t> positions(values.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  std::sort(positions.begin(), positions.end(), [subkey](std::size_t a, std::size_t b) {
    return std::pair(rnd::bits32_at(subkey, a), a) < std::pair(rnd::bits32_at(subkey, b), b);
  });
  std::vector<std::uint32_t> out;
  for (const std::size_t p : positions) out.push_back(values[p]);
  return out;
}

std::vector<std::uint32_t> in_order(std::size_t n) {
  std::vector<std::uint32_t> values(n);
  std::iota(values.begin(), values.end(), 0U);
  return values;
}

}  // namespace

TEST_CASE("a permutation holds every index once and depends on the key") {
  for (const std::size_t n : {std::size_t{2}, std::size_t{100}, std::size_t{60'000}}) {
    auto order = rnd::permutation(rnd::make_key(7), n);
    CHECK(order == rnd::permutation(rnd::make_key(7), n));
    if (n > 2) CHECK(order != rnd::permutation(rnd::make_key(8), n));
    std::sort(order.begin(), order.end());
    CHECK(order == in_order(n));
  }
}

TEST_CASE("up to 1625 elements take one round of sorting by random words, more take two") {
  const rnd::key k = rnd::make_key(3);
  const auto [next, subkey] = rnd::split(k);
  CHECK(rnd::permutation(k, 1625) == sorted_by_bits(in_order(1625), subkey));
  const auto once = sorted_by_bits(in_order(1626), subkey);
  CHECK(rnd::permutation(k, 1626) == sorted_by_bits(once, rnd::split(next)[1]));
}

TEST_CASE("none and one element stay as they are, 2^32 are refused") {
  CHECK(rnd::permutation(rnd::make_key(0), 0).empty());
  CHECK(rnd::permutation(rnd::make_key(0), 1) == std::vector<std::uint32_t>{0});
  CHECK_THROWS_WITH(rnd::permutation(rnd::make_key(0), std::size_t{1} << 32),
                    "random::permutation: n = 4294967296 is outside [0, 2^32)");
}
