// SPDX-License-Identifier: Apache-2.0
// Products of tiles of bfloat16 by dot-product instructions (AVX-512 BF16), and the shape of tiles.
#pragma once

#if defined(__AVX512BF16__) && defined(__AVX512BW__)
#define TESSERA_HAS_BFLOAT16_TILES 1

#include <tessera/core/sixteen_bits.hpp>

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tessera::kernels::detail {

/// A tile of a left operand is 16 rows of 32 numbers, one of a right operand 16 rows of 16 pairs, one of a product 16
/// rows of 16 floats: a kilobyte each.
inline constexpr std::int64_t tile_lines = 16;
inline constexpr std::int64_t tile_depth = 32;

/// Whether dot products beat widened operands here: Zen 4 and later do two a cycle, twice the float32 rate. Sapphire
/// Rapids reaches half of the float32 rate with them, and has matrix registers for this.
inline bool has_fast_dot_products() {
  static const bool fast = __builtin_cpu_is("amd");
  return fast;
}

/// Eight rows of c[][32] (+)= a[8][depth] b[depth][32]; operands as of multiply_tiles_in_vectors.
inline void multiply_eight_rows(std::int64_t depth, const bfloat16* a, const bfloat16* b, float* c, std::int64_t c_step,
                                bool accumulate) {
  constexpr int rows = 8;
  constexpr std::int64_t tile = tile_lines * tile_depth;
  const bfloat16* b_beside = b + depth * tile_lines;
  __m512 sum[2 * rows];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2; ++j)
      sum[2 * i + j] = accumulate ? _mm512_loadu_ps(c + i * c_step + j * tile_lines) : _mm512_setzero_ps();
  for (std::int64_t k = 0; k < depth; k += tile_depth, a += tile, b += tile, b_beside += tile)
    for (std::int64_t pair = 0; pair < tile_lines; ++pair) {
      const auto left_half = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + pair * tile_depth));
      const auto right_half = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b_beside + pair * tile_depth));
#pragma GCC unroll 8
      for (int i = 0; i < rows; ++i) {
        std::int32_t two;
        std::memcpy(&two, a + i * tile_depth + 2 * pair, sizeof(two));
        const auto numbers = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
        sum[2 * i] = _mm512_dpbf16_ps(sum[2 * i], numbers, left_half);
        sum[2 * i + 1] = _mm512_dpbf16_ps(sum[2 * i + 1], numbers, right_half);
      }
    }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2; ++j) _mm512_storeu_ps(c + i * c_step + j * tile_lines, sum[2 * i + j]);
}

/// c[32][32] (+)= a[32][depth] b[depth][32], depth a multiple of 32, of whose rows at least the first `rows` are
/// computed.
/// `a` is two rows of tiles, each tile behind the last one; `b` two columns of tiles likewise; c_step is in floats.
inline void multiply_tiles_in_vectors(std::int64_t depth, const bfloat16* a, const bfloat16* b, float* c,
                                      std::int64_t c_step, bool accumulate, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; i += 8) {
    const std::int64_t row_of_tiles = i / tile_lines;
    multiply_eight_rows(depth, a + row_of_tiles * depth * tile_lines + i % tile_lines * tile_depth, b, c + i * c_step,
                        c_step, accumulate);
  }
}

}  // namespace tessera::kernels::detail

#endif
