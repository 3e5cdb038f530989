// SPDX-License-Identifier: Apache-2.0
// Floats as sums of three bfloat16 numbers, and the products of such parts that make a product of floats in matrix
// registers (AMX).
#pragma once

#include <tessera/kernels/arch/amx.hpp>

#if defined(TESSERA_HAS_AMX)

#include <cstdint>

namespace tessera::kernels::detail {

/// x = first + second + third exactly, each the bfloat16 nearest to what is left, in the upper halves of the lanes
/// (ties away from zero; below are zeros). Holds for 0 and what is not a special_float.
struct float_parts {
  __m512i first, second, third;

  explicit float_parts(__m512 x) {
    first = rounded(x);
    const __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(first));
    second = rounded(rest);
    third = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(second)));
  }

 private:
  static __m512i rounded(__m512 x) {
    const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    return _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
  }
};

/// Lanes of bfloat16 numbers, of `low` in the lower halves and of `high` in the upper ones.
inline __m512i pairs_of(__m512i low, __m512i high) {
  constexpr __mmask32 upper_halves = 0xaaaaaaaa;
  return _mm512_mask_blend_epi16(upper_halves, _mm512_maskz_srli_epi32(0xffff, low, 16), high);
}

/// 2^-102 and 2^62 as bits.
inline constexpr std::uint32_t least_with_parts = (127U - 102U) << 23, least_too_large = (127U + 62U) << 23;

/// Floats whose parts would lose something, as bits without the sign: below 2^-102 the third part is no normal number,
/// and matrix registers take those for zeros; from 2^62 on a product of first parts may overflow where that of the
/// floats does not; infinities and NaN have no parts.
constexpr bool special_float(std::uint32_t magnitude) {
  return magnitude >= least_too_large || magnitude - 1U < least_with_parts - 1U;
}

/// Looks for special floats among many.
class special_floats {
 public:
  void look_at(__m512 x) {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    most_ = _mm512_maskz_max_epu32(0xffff, most_, magnitude);
    least_ = _mm512_maskz_min_epu32(0xffff, least_, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
  }
  bool found() const {
    const auto limit = [](std::uint32_t bits) { return _mm512_set1_epi32(static_cast<int>(bits)); };
    return (_mm512_cmpge_epu32_mask(most_, limit(least_too_large)) |
            _mm512_cmplt_epu32_mask(least_, limit(least_with_parts - 1U))) != 0;
  }

 private:
  __m512i most_ = _mm512_setzero_si512();
  __m512i least_ = _mm512_set1_epi32(-1);
};

/// c[16 Rows][16] (+)= a b of floats in parts, depth a multiple of tile_depth. `a` is Rows (1 or 2) rows of tiles, `b`
/// a column of tiles, each with the three parts of a tile behind one another, then those of the next tile along the
/// depth. Six products of parts, small ones first; the other three are below 2^-24 of the whole together. Calls
/// meanwhile() after each tile of the depth, while the matrix unit is busy. Exchanged: products of parts are added in
/// the order that a^T and b^T have as right and left side.
///
/// Five registers are used; see multiply_tiles.
template <int Rows, bool Exchanged, class Meanwhile>
void multiply_tiles_of_parts(std::int64_t depth, const bfloat16* a, const bfloat16* b, float* c, std::int64_t c_step,
                             bool accumulate, Meanwhile& meanwhile) {
  constexpr std::int64_t tile = tile_lines * tile_depth;
  constexpr std::int64_t row_bytes = 64;
  _tile_zero(0);
  if constexpr (Rows > 1) _tile_zero(1);
  const bfloat16* a_below = a + 3 * depth * tile_lines;
  const auto multiply = []() __attribute__((always_inline)) {
    _tile_dpbf16ps(0, 2, 4);
    if constexpr (Rows > 1) _tile_dpbf16ps(1, 3, 4);
  };
  const auto load_b = [&](std::int64_t part) __attribute__((always_inline)) {
    _tile_loadd(4, b + part * tile, row_bytes);
  };
  const auto load_a_and_multiply = [&](std::int64_t part) __attribute__((always_inline)) {
    _tile_loadd(2, a + part * tile, row_bytes);
    _tile_dpbf16ps(0, 2, 4);
    if constexpr (Rows > 1) {
      _tile_loadd(3, a_below + part * tile, row_bytes);
      _tile_dpbf16ps(1, 3, 4);
    }
  };
  for (std::int64_t k = 0; k < depth; k += tile_depth, a += 3 * tile, a_below += 3 * tile, b += 3 * tile) {
    if constexpr (Exchanged) {
      load_b(2), load_a_and_multiply(0);
      load_b(1), multiply();
      load_a_and_multiply(1);
      load_b(0), multiply();
      load_a_and_multiply(2);
      load_a_and_multiply(0);
    } else {
      load_b(0), load_a_and_multiply(2);
      load_a_and_multiply(1);
      load_b(1), multiply();
      load_a_and_multiply(0);
      load_b(2), multiply();
      load_b(0), multiply();
    }
    meanwhile();
  }
  if (!accumulate) {
    const std::int64_t c_bytes = c_step * static_cast<std::int64_t>(sizeof(float));
    _tile_stored(0, c, c_bytes);
    if constexpr (Rows > 1) _tile_stored(1, c + tile_lines * c_step, c_bytes);
    return;
  }
  alignas(64) float sums[Rows * tile_lines * tile_lines];
  _tile_stored(0, sums, row_bytes);
  if constexpr (Rows > 1) _tile_stored(1, sums + tile_lines * tile_lines, row_bytes);
  for (std::int64_t i = 0; i < Rows * tile_lines; ++i, c += c_step)
    _mm512_storeu_ps(c, _mm512_add_ps(_mm512_loadu_ps(c), _mm512_load_ps(sums + i * tile_lines)));
}

}  // namespace tessera::kernels::detail

#endif
