// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 in matrix registers: operands packed into tiles, blocks of 32 x 32 of C.
#pragma once

#include <tessera/kernels/arch/amx.hpp>

#if defined(TESSERA_HAS_AMX)

#include <tessera/kernels/arch/transpose.hpp>
#include <tessera/kernels/detail/gemm_pack.hpp>
#include <tessera/kernels/detail/workspace.hpp>

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

/// Packs `lines` (at most 16) lines over `depth` steps into tiles one behind another; left operands have a line a row,
/// right ones a pair of steps a row.
inline void pack_tiles(const gemm_operand<bfloat16>& from, bool left, std::int64_t line, std::int64_t lines,
                       std::int64_t start, std::int64_t depth, bfloat16* to) {
  for (std::int64_t p = 0; p < depth; p += tile_depth, to += tile_lines * tile_depth) {
    line_pairs rows[16];
    const std::int64_t steps = std::min(tile_depth, depth - p);
    if (from.depth_major) read_steps(from, line, lines, start + p, steps, rows);
    else read_lines(from, line, lines, start + p, steps, rows);
    if (from.depth_major == left) transpose_pairs(rows);
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * tile_depth, rows[i]);
  }
}

/// One product C (+)= A B over a rectangle of C, on this thread. Every element is summed pair by pair along the depth,
/// whatever the rectangle.
struct tiled_product {
  gemm_side<bfloat16> a;
  gemm_side<bfloat16> b;
  std::int64_t group;
  std::int64_t depth;
  float* c;
  std::int64_t c_step;
  bool accumulate;
  gemm_finish finish;
  std::int64_t finished_group;

  static constexpr std::int64_t block = 2 * tile_lines;
  static constexpr std::int64_t most_depth = 1024;
  static constexpr std::int64_t a_room = block * most_depth;
  static constexpr std::int64_t b_room = static_cast<std::int64_t>(workspace_bytes - staging_bytes) / 2 - a_room;

  static constexpr std::int64_t up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

  void operator()(std::int64_t row, std::int64_t last_row, std::int64_t column, std::int64_t last_column) const {
    const matrix_registers registers;
    auto* const packed_a = reinterpret_cast<bfloat16*>(workspace());
    for (std::int64_t k = 0; k < depth; k += most_depth) {
      const std::int64_t steps = std::min(most_depth, depth - k);
      const std::int64_t columns = std::min(b_room / up(steps, tile_depth) / block * block, widest);
      for (std::int64_t j = column; j < last_column; j += columns)
        multiply_strip(row, last_row, j, std::min(last_column, j + columns), k, steps, packed_a);
    }
  }

 private:
  /// A row of blocks of C is not wider, so that it stays in the second cache.
  static constexpr std::int64_t widest = 4096;

  /// Calls f(operand, line, last, start) for the blocks of lines [first, end) of a side in order: the operand's lines
  /// [line, last) from step `start` on are the block.
  template <class F>
  void for_each_block(const gemm_side<bfloat16>& side, std::int64_t first, std::int64_t end, std::int64_t k,
                      std::int64_t steps, F&& f) const {
    const std::int64_t at_once = side.source ? staged_lines<bfloat16>(steps) / block * block : end - first;
    for (std::int64_t base = first; base < end; base += at_once) {
      const std::int64_t last = std::min(end, base + at_once);
      if (side.source) side.make(group, base, last - base, k, steps, staging<bfloat16>());
      for (std::int64_t i = base; i < last; i += block)
        if (side.source) f(i, side.made(staging<bfloat16>(), last - base, steps), i - base, last - base, 0);
        else f(i, side.of(group), i, last, k);
    }
  }

  static void pack_pair(const gemm_operand<bfloat16>& from, bool left, std::int64_t line, std::int64_t last,
                        std::int64_t start, std::int64_t steps, bfloat16* to) {
    for (std::int64_t half = 0; half < 2; ++half)
      pack_tiles(from, left, line + half * tile_lines, std::clamp<std::int64_t>(last - line - half * tile_lines, 0, 16),
                 start, steps, to + half * tile_lines * up(steps, tile_depth));
  }

  void multiply_strip(std::int64_t row, std::int64_t last_row, std::int64_t column, std::int64_t last_column,
                      std::int64_t k, std::int64_t steps, bfloat16* packed_a) const {
    const std::int64_t padded = up(steps, tile_depth);
    bfloat16* const packed_b = packed_a + a_room;
    using operand = gemm_operand<bfloat16>;
    for_each_block(b, column, last_column, k, steps,
                   [&](std::int64_t j, const operand& from, std::int64_t line, std::int64_t last, std::int64_t start) {
                     pack_pair(from, false, line, last, start, steps, packed_b + (j - column) * padded);
                   });
    for_each_block(a, row, last_row, k, steps,
                   [&](std::int64_t i, const operand& from, std::int64_t line, std::int64_t last, std::int64_t start) {
                     pack_pair(from, true, line, last, start, steps, packed_a);
                     const std::int64_t rows = std::min(block, last_row - i);
                     for (std::int64_t j = column; j < last_column; j += block)
                       multiply_block(padded, packed_a, packed_b + (j - column) * padded, rows,
                                      std::min(block, last_column - j), c + i * c_step + j, accumulate || k > 0);
                     if (finish && k + steps == depth)
                       finish.run(finish.context, finished_group, i, rows, column, last_column - column);
                   });
  }

  /// A block of C, by way of a whole one where it is smaller.
  void multiply_block(std::int64_t padded, const bfloat16* left, const bfloat16* right, std::int64_t rows,
                      std::int64_t columns, float* to, bool add) const {
    if (rows == block && columns == block) return multiply_tiles(padded, left, right, to, c_step, add);
    alignas(64) float whole[block * block]{};
    if (add)
      for (std::int64_t i = 0; i < rows; ++i) std::copy_n(to + i * c_step, columns, whole + i * block);
    multiply_tiles(padded, left, right, whole, block, add);
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(whole + i * block, columns, to + i * c_step);
  }
};

}  // namespace tessera::kernels::detail

#endif
