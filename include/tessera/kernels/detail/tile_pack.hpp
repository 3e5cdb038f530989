// SPDX-License-Identifier: Apache-2.0
// Packs operands into tiles for products in matrix registers: bfloat16 as it is, floats as three parts.
#pragma once

#include <tessera/kernels/arch/bfloat16_parts.hpp>

#if defined(TESSERA_HAS_BFLOAT16_TILES)

#include <tessera/kernels/arch/transpose.hpp>
#include <tessera/kernels/detail/gemm_pack.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tessera::kernels::detail {

/// Pairs of neighbours along the depth, of 16 lines: pair[i] are elements (start, start + 1) of line first + i; zeros
/// beyond the lines and the depth.
using line_pairs = __m512i;

/// 16 x 16 pairs: rows become columns.
inline void transpose_pairs(line_pairs (&rows)[16]) {
  xsimd::batch<float> square[16];
  for (int i = 0; i < 16; ++i) square[i] = _mm512_castsi512_ps(rows[i]);
  transpose<float>(square);
  for (int i = 0; i < 16; ++i) rows[i] = _mm512_castps_si512(square[i]);
}

/// One tile's lines [line, line + lines) and steps [start, start + depth) of an operand that is stored line by line, a
/// line a row: rows of 32 numbers.
inline void read_lines(const gemm_operand<bfloat16>& from, std::int64_t line, std::int64_t lines, std::int64_t start,
                       std::int64_t depth, line_pairs (&rows)[16]) {
  const auto mask = static_cast<__mmask32>(depth >= 32 ? ~0U : (1U << depth) - 1U);
  for (int i = 0; i < 16; ++i)
    rows[i] = i < lines ? _mm512_maskz_loadu_epi16(mask, from.at(line + i, start)) : _mm512_setzero_si512();
}

/// The same of an operand that is stored step by step: rows are pairs of steps, 16 lines side by side.
inline void read_steps(const gemm_operand<bfloat16>& from, std::int64_t line, std::int64_t lines, std::int64_t start,
                       std::int64_t depth, line_pairs (&rows)[16]) {
  const auto mask = static_cast<__mmask16>(lines >= 16 ? 0xffffU : (1U << lines) - 1U);
  constexpr __mmask16 all = 0xffff;  // without a mask g++ 12 warns of its header's undefined operand
  const auto step = [&](std::int64_t p) {
    return p < depth ? _mm512_maskz_cvtepu16_epi32(all, _mm256_maskz_loadu_epi16(mask, from.at(line, start + p)))
                     : _mm512_setzero_si512();
  };
  for (int i = 0; i < 16; ++i)
    rows[i] = _mm512_or_si512(step(2 * i), _mm512_maskz_slli_epi32(all, step(2 * i + 1), 16));
}

/// Packs the tile of `lines` (at most 16) lines over `depth` (at most tile_depth) steps; left operands have a line a
/// row, right ones a pair of steps a row. Returns whether some number needs another way to be multiplied: never.
inline bool pack_tile(const gemm_operand<bfloat16>& from, bool left, std::int64_t line, std::int64_t lines,
                      std::int64_t start, std::int64_t depth, bfloat16* to) {
  line_pairs rows[16];
  if (from.depth_major) read_steps(from, line, lines, start, depth, rows);
  else read_lines(from, line, lines, start, depth, rows);
  if (from.depth_major == left) transpose_pairs(rows);
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * tile_depth, rows[i]);
  return false;
}

#if defined(TESSERA_HAS_AMX)

/// Row i of a tile in parts, whose lanes hold steps (or lines of steps) that are 16 apart.
[[gnu::always_inline]] inline void store_parts(__m512 low, __m512 high, std::int64_t i, bfloat16* to,
                                               special_floats& special) {
  constexpr std::int64_t tile = tile_lines * tile_depth;
  special.look_at(low);
  special.look_at(high);
  const float_parts left(low), right(high);
  _mm512_storeu_si512(to + i * tile_depth, pairs_of(left.first, right.first));
  _mm512_storeu_si512(to + i * tile_depth + tile, pairs_of(left.second, right.second));
  _mm512_storeu_si512(to + i * tile_depth + 2 * tile, pairs_of(left.third, right.third));
}

/// The tile of floats as three tiles of parts, where the pairs are steps (i, i + 16) of the tile. Returns whether some
/// number is a special_float. Rows of memory are steps where DepthMajor, else lines.
template <bool DepthMajor, bool Turned>
bool pack_tile_of_parts(const float* from, std::int64_t leading, std::int64_t lines, std::int64_t depth, bfloat16* to) {
  constexpr std::int64_t half = tile_depth / 2;
  const auto first_ones = [](std::int64_t n) {
    return static_cast<__mmask16>(n >= 16 ? 0xffffU : n <= 0 ? 0U : (1U << n) - 1U);
  };
  const std::int64_t rows = DepthMajor ? std::min(depth, half) : lines, other_rows = DepthMajor ? depth - half : lines;
  const __mmask16 mask = first_ones(DepthMajor ? lines : depth);
  const __mmask16 other_mask = first_ones(DepthMajor ? lines : depth - half);
  const float* const other = from + (DepthMajor ? half * leading : half);
  const auto load = [&](std::int64_t i) {
    return i < rows ? _mm512_maskz_loadu_ps(mask, from + i * leading) : __m512{};
  };
  const auto load_other = [&](std::int64_t i) {
    return i < other_rows ? _mm512_maskz_loadu_ps(other_mask, other + i * leading) : __m512{};
  };
  special_floats special;
  if constexpr (!Turned) {
    for (std::int64_t i = 0; i < tile_lines; ++i) store_parts(load(i), load_other(i), i, to, special);
  } else {
    xsimd::batch<float> low[16], high[16];
    for (int i = 0; i < 16; ++i) low[i] = load(i);
    transpose<float>(low);
    for (int i = 0; i < 16; ++i) high[i] = load_other(i);
    transpose<float>(high);
    for (int i = 0; i < 16; ++i) store_parts(low[i], high[i], i, to, special);
  }
  return special.found();
}

inline bool pack_tile(const gemm_operand<float>& from, bool left, std::int64_t line, std::int64_t lines,
                      std::int64_t start, std::int64_t depth, bfloat16* to) {
  const float* const at = from.at(line, start);
  if (from.depth_major)
    return left ? pack_tile_of_parts<true, true>(at, from.leading, lines, depth, to)
                : pack_tile_of_parts<true, false>(at, from.leading, lines, depth, to);
  return left ? pack_tile_of_parts<false, false>(at, from.leading, lines, depth, to)
              : pack_tile_of_parts<false, true>(at, from.leading, lines, depth, to);
}

#endif

/// Asks for the memory of at most tile_depth steps of a tile of an operand that is stored step by step.
template <class T>
void ask_for_steps(const gemm_operand<T>& from, std::int64_t line, std::int64_t start, std::int64_t depth) {
  for (std::int64_t p = 0; p < std::min(tile_depth, depth); ++p) __builtin_prefetch(from.at(line, start + p), 0, 3);
}

}  // namespace tessera::kernels::detail

#endif
