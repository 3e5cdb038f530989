// SPDX-License-Identifier: Apache-2.0
#include <tessera/random/threefry.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

namespace rnd = tessera::random;

// The published known answers of Threefry-2x32, 20 rounds.
static_assert(rnd::threefry2x32({0, 0}, 0, 0) == rnd::key{0x6b200159, 0x99ba4efe});
static_assert(rnd::threefry2x32({0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff) == rnd::key{0x1cb996fc, 0xbb002be7});
static_assert(rnd::threefry2x32({0x13198a2e, 0x03707344}, 0x243f6a88, 0x85a308d3) == rnd::key{0xc4923a9c, 0x483df7a0});

static_assert(rnd::make_key(42) == rnd::key{0, 42});
static_assert(rnd::make_key(0xffffffffU) == rnd::key{0, 0xffffffff});
static_assert(rnd::make_key(std::uint64_t{1} << 32 | 7) == rnd::key{1, 7});

constexpr rnd::key parent = rnd::make_key(42);
static_assert(rnd::split<5>(parent)[3] == rnd::split_at(parent, 3));
static_assert(rnd::split(parent)[0] == rnd::split<5>(parent)[0]);
static_assert(rnd::split(parent, 3)[2] == rnd::split_at(parent, 2));
static_assert(rnd::fold_in(parent, 7) == rnd::split_at(parent, 7));
static_assert(rnd::bits8_at(parent, 3) == (rnd::bits32_at(parent, 3) & 0xff));
static_assert(rnd::bits16_at(parent, 3) == (rnd::bits32_at(parent, 3) & 0xffff));
static_assert(rnd::bits64_at(parent, 3) >> 32 == rnd::split_at(parent, 3).hi);

template <rnd::key K>
struct as_template_argument {
  static constexpr std::uint32_t bits = rnd::bits32_at(K, 0);
};
static_assert(as_template_argument<rnd::make_key(0)>::bits == 0xf29a4fa7);

TEST_CASE("the counter's high word takes part beyond 2^32 elements") {
  const std::uint64_t far = (std::uint64_t{3} << 32) + 5;
  CHECK(rnd::split_at(parent, far) == rnd::threefry2x32(parent, 3, 5));
  CHECK(rnd::bits32_at(parent, far) != rnd::bits32_at(parent, 5));
}

TEST_CASE("a shard that fills itself from its first index holds what the whole array holds there") {
  std::vector<std::uint32_t> whole(1000), part(300);
  rnd::fill_bits(whole, parent);
  rnd::fill_bits(part, parent, 650);
  for (std::size_t i = 0; i < part.size(); ++i) CHECK(part[i] == whole[650 + i]);

  const std::uint64_t before_carry = (std::uint64_t{1} << 32) - 100;
  rnd::fill_bits(part, parent, before_carry);
  for (std::size_t i = 0; i < part.size(); ++i) CHECK(part[i] == rnd::bits32_at(parent, before_carry + i));
}

TEST_CASE("a negative seed is refused with its value and the range") {
  CHECK_THROWS_AS(rnd::make_key(-1), tessera::value_error);
  CHECK_THROWS_WITH(rnd::make_key(-1), "random::make_key: seed -1 is outside [0, 2^64)");
}
