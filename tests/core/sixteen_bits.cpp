// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <tessera/core/dtype.hpp>
#include <tessera/core/finfo.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

using tessera::bfloat16;
using tessera::float16;

constexpr std::uint16_t bfloat16_of(std::uint32_t bits) { return bfloat16(std::bit_cast<float>(bits)).bits(); }

// Ties go to even, what is too large to infinity, NaN stays NaN, zeros keep their sign.
static_assert(bfloat16_of(0x3E89CCD5) == 0x3E8A);
static_assert(bfloat16_of(0x3F808000) == 0x3F80);
static_assert(bfloat16_of(0x3F818000) == 0x3F82);
static_assert(bfloat16_of(0x3F808001) == 0x3F81);
static_assert(bfloat16_of(0x7F7F7FFF) == 0x7F7F);
static_assert(bfloat16_of(0x7F7F8000) == 0x7F80);
static_assert(bfloat16_of(0xFF800000) == 0xFF80);
static_assert(bfloat16_of(0x80000001) == 0x8000);

static_assert(float{float16(1e-8)} == 0);
static_assert(float{float16(7e4)} == std::numeric_limits<float>::infinity());
static_assert(float{float16(65519.0)} == 65504);
static_assert(float{bfloat16(70000)} == 70144);

// A sum is rounded once, from the exact one.
static_assert(bfloat16(256) + bfloat16(1) == bfloat16(256));
static_assert(float16(256) + float16(1) == float16(257));

// A double halfway between two floats that are rounded to different numbers of 16 bits is not rounded twice.
static_assert(bfloat16(1.00390625 + 0x1p-40) == bfloat16(1.0078125F));
static_assert(float16(1.00048828125 - 0x1p-40) == float16(1));

static_assert(tessera::dtype_of<bfloat16> == tessera::bf16 && tessera::dtype_of<float16> == tessera::f16);
static_assert(std::numeric_limits<float16>::max() == float16(65504));
static_assert(std::numeric_limits<bfloat16>::denorm_min() == bfloat16(0x1p-133));

template <class T>
std::int64_t count_not_kept() {
  std::int64_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const T x = T::from_bits(static_cast<std::uint16_t>(bits));
    if (std::isnan(float{x})) wrong += !std::isnan(float{T(float{x})});
    else wrong += T(float{x}).bits() != bits;
  }
  return wrong;
}

/// Rounding of the midpoint of each pair of neighbours, and of the floats beside it.
template <class T>
std::int64_t count_rounded_wrong() {
  std::int64_t wrong = 0;
  for (std::uint32_t bits = 0; bits + 1 < std::numeric_limits<T>::infinity().bits(); ++bits) {
    const T low = T::from_bits(static_cast<std::uint16_t>(bits));
    const T high = T::from_bits(static_cast<std::uint16_t>(bits + 1));
    const auto middle = static_cast<float>((double{float{low}} + double{float{high}}) / 2);
    if (double{middle} * 2 != double{float{low}} + double{float{high}}) continue;  // float has no such subnormal
    wrong += T(middle).bits() != (bits % 2 == 0 ? bits : bits + 1);
    wrong += T(std::nextafter(middle, 0.0F)).bits() != bits;
    wrong += T(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits() != bits + 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("every number of 16 bits comes back from float, and NaN stays NaN") {
  CHECK(count_not_kept<bfloat16>() == 0);
  CHECK(count_not_kept<float16>() == 0);
}

TEST_CASE("the nearest number of 16 bits is taken, of two equally near ones the even one") {
  CHECK(count_rounded_wrong<bfloat16>() == 0);
  CHECK(count_rounded_wrong<float16>() == 0);
}

TEST_CASE("numbers of 16 bits are hashed by value") {
  CHECK(std::hash<float16>{}(float16(0.0F)) == std::hash<float16>{}(float16(-0.0F)));
  CHECK(std::hash<float16>{}(float16(1)) != std::hash<float16>{}(float16(2)));
}

TEST_CASE("finfo has the published limits") {
  constexpr tessera::float_info half = tessera::finfo<tessera::f16>();
  CHECK(half.nexp == 5);
  CHECK(half.nmant == 10);
  CHECK(half.max == 65504);
  constexpr tessera::float_info brain = tessera::finfo<bfloat16>();
  CHECK(brain.nexp == tessera::finfo<float>().nexp);
  CHECK(brain.eps == 0.0078125);
}
