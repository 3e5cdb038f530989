// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <tessera/kernels/arch/sixteen_bits.hpp>

#include <bit>
#include <cstdint>
#include <vector>

namespace {

namespace detail = tessera::kernels::detail;
using tessera::bfloat16;
using tessera::float16;

constexpr auto width = static_cast<std::uint32_t>(xsimd::batch<float>::size);

/// Calls f(bits of the first lane) over the whole range of float, a vector at a time: every exponent and sign with
/// every pattern of the 13 bits where halves are rounded, and the others in steps of a prime.
template <class F>
void for_each_vector(F f) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 16 * 61) f(static_cast<std::uint32_t>(bits));
}

xsimd::batch<float> lanes_from(std::uint32_t first) {
  alignas(64) float lanes[width];
  for (std::uint32_t i = 0; i < width; ++i) lanes[i] = std::bit_cast<float>(first + i);
  return xsimd::batch<float>::load_aligned(lanes);
}

template <class Small>
std::int64_t count_rounded_otherwise() {
  std::int64_t wrong = 0;
  for_each_vector([&](std::uint32_t first) {
    Small stored[width];
    detail::store_rounded(stored, lanes_from(first));
    alignas(64) float kept[width];
    detail::rounded_to<Small>(lanes_from(first)).store_aligned(kept);
    for (std::uint32_t i = 0; i < width; ++i) {
      const Small expected(std::bit_cast<float>(first + i));
      wrong += stored[i].bits() != expected.bits();
      wrong += std::bit_cast<std::uint32_t>(kept[i]) != std::bit_cast<std::uint32_t>(float{expected});
    }
  });
  return wrong;
}

template <class Small>
std::int64_t count_widened_otherwise() {
  std::int64_t wrong = 0;
  for (std::uint32_t first = 0; first < 65536; first += width) {
    Small small[width];
    for (std::uint32_t i = 0; i < width; ++i) small[i] = Small::from_bits(static_cast<std::uint16_t>(first + i));
    alignas(64) float wide[width];
    detail::load_widened(small).store_aligned(wide);
    for (std::uint32_t i = 0; i < width; ++i)
      wrong += std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(float{small[i]});
  }
  return wrong;
}

}  // namespace

TEST_CASE("vectors are rounded to 16 bits as single numbers are") {
  CHECK(count_rounded_otherwise<bfloat16>() == 0);
  CHECK(count_rounded_otherwise<float16>() == 0);
}

TEST_CASE("vectors of all numbers of 16 bits become those of 32 bits") {
  CHECK(count_widened_otherwise<bfloat16>() == 0);
  CHECK(count_widened_otherwise<float16>() == 0);
}

TEST_CASE("operations on whole numbers convert float16 as the processor does") {
  std::int64_t wrong = 0;
  for_each_vector([&](std::uint32_t first) {
    const auto halves = detail::to_float16_bits(detail::words_of(lanes_from(first)));
    const auto back = detail::from_float16_bits(halves);
    for (std::uint32_t i = 0; i < width; ++i) {
      const float16 expected(std::bit_cast<float>(first + i));
      wrong += halves[i] != expected.bits();
      wrong += back[i] != std::bit_cast<std::uint32_t>(float{expected});
    }
  });
  CHECK(wrong == 0);
}
