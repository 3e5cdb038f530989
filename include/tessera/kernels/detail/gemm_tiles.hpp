// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 by matrix registers or dot-product instructions: operands packed into tiles, blocks of 32 x 32
// of C.
#pragma once

#include <tessera/kernels/arch/amx.hpp>

#if defined(TESSERA_HAS_BFLOAT16_TILES)

#include <tessera/kernels/arch/transpose.hpp>
#include <tessera/kernels/detail/gemm_pack.hpp>
#include <tessera/kernels/detail/workspace.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

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
/// row, right ones a pair of steps a row.
inline void pack_tile(const gemm_operand<bfloat16>& from, bool left, std::int64_t line, std::int64_t lines,
                      std::int64_t start, std::int64_t depth, bfloat16* to) {
  line_pairs rows[16];
  if (from.depth_major) read_steps(from, line, lines, start, depth, rows);
  else read_lines(from, line, lines, start, depth, rows);
  if (from.depth_major == left) transpose_pairs(rows);
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * tile_depth, rows[i]);
}

/// Asks for the memory of tile_depth steps, 32 lines each, of an operand that is stored step by step.
inline void ask_for_steps(const gemm_operand<bfloat16>& from, std::int64_t line, std::int64_t start,
                          std::int64_t depth) {
  for (std::int64_t p = 0; p < std::min(tile_depth, depth); ++p) __builtin_prefetch(from.at(line, start + p), 0, 3);
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
  static constexpr std::int64_t few_rows = 4 * block;
  static constexpr std::int64_t a_room = few_rows * most_depth;
  static constexpr std::int64_t b_room = static_cast<std::int64_t>(workspace_bytes - staging_bytes) / 2 - a_room;

  static constexpr std::int64_t up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

  void operator()(std::int64_t row, std::int64_t last_row, std::int64_t column, std::int64_t last_column) const {
    std::optional<matrix_registers> registers;
    if (has_matrix_registers()) registers.emplace();
    auto* const packed_a = reinterpret_cast<bfloat16*>(workspace());
    const bool few = last_row - row <= few_rows;
    const std::int64_t at_once = few ? few_rows : block;
    const bool far = (last_row - row) * (last_column - column) > far_elements<float>;
    for (std::int64_t k = 0; k < depth; k += most_depth) {
      const std::int64_t steps = std::min(most_depth, depth - k);
      const std::int64_t padded = up(steps, tile_depth);
      const std::int64_t columns = few ? together * block : std::min(b_room / padded / block * block, widest);
      if (few) pack_side(a, true, row, last_row, k, steps, packed_a);
      for (std::int64_t j = column; j < last_column; j += columns) {
        const std::int64_t last = std::min(last_column, j + columns);
        pack_side(b, false, j, last, k, steps, packed_a + a_room);
        for (std::int64_t i = row; i < last_row; i += at_once) {
          const std::int64_t end = std::min(last_row, i + at_once);
          if (!few) pack_side(a, true, i, end, k, steps, packed_a);
          multiply_strip(i, end, j, last, k, steps, packed_a, far);
        }
      }
    }
  }

 private:
  /// A row of blocks of C is not wider, so that it stays in the second cache.
  static constexpr std::int64_t widest = 4096;

  /// Blocks of a step's row of memory that are packed together: a piece long enough for processors to fetch ahead.
  static constexpr std::int64_t together = 8;

  /// What is larger than this does not stay in the second cache: a mebibyte.
  template <class T>
  static constexpr std::int64_t far_elements = (std::int64_t{1} << 20) / static_cast<std::int64_t>(sizeof(T));

  /// Calls f(i, operand, line, last, start) for lines [first, end) of a side in order, a few blocks of lines at a time:
  /// lines [line, last) of the operand from step `start` on are those from i on.
  template <class F>
  void for_each_block(const gemm_side<bfloat16>& side, std::int64_t first, std::int64_t end, std::int64_t k,
                      std::int64_t steps, F&& f) const {
    const std::int64_t few_blocks = (side.first.depth_major ? together : 1) * block;
    const std::int64_t at_once = side.source ? staged_lines<bfloat16>(steps) / block * block : end - first;
    for (std::int64_t base = first; base < end; base += at_once) {
      const std::int64_t last = std::min(end, base + at_once);
      if (side.source) side.make(group, base, last - base, k, steps, staging<bfloat16>());
      for (std::int64_t i = base; i < last; i += few_blocks) {
        const std::int64_t until = std::min(last, i + few_blocks);
        if (side.source) f(i, side.made(staging<bfloat16>(), last - base, steps), i - base, until - base, 0);
        else f(i, side.of(group), i, until, k);
      }
    }
  }

  /// Packs lines [line, last), block behind block; a block is two rows of tiles along the depth. Memory is read row by
  /// row.
  static void pack_blocks(const gemm_operand<bfloat16>& from, bool left, std::int64_t line, std::int64_t last,
                          std::int64_t start, std::int64_t steps, bool far, bfloat16* to) {
    const std::int64_t padded = up(steps, tile_depth);
    const std::int64_t end = line + up(last - line, block);
    const auto pack = [&](std::int64_t i, std::int64_t p) {
      pack_tile(from, left, i, std::clamp<std::int64_t>(last - i, 0, tile_lines), start + p,
                std::min(tile_depth, steps - p), to + (i - line) * padded + p * tile_lines);
    };
    if (!from.depth_major) {
      for (std::int64_t i = line; i < end; i += tile_lines)
        for (std::int64_t p = 0; p < steps; p += tile_depth) pack(i, p);
      return;
    }
    for (std::int64_t p = 0; p < steps; p += tile_depth)
      for (std::int64_t i = line; i < end; i += block) {
        if (far) ask_for_steps(from, i, start + p + tile_depth, steps - p - tile_depth);
        pack(i, p);
        pack(i + tile_lines, p);
      }
  }

  void pack_side(const gemm_side<bfloat16>& side, bool left, std::int64_t first, std::int64_t end, std::int64_t k,
                 std::int64_t steps, bfloat16* to) const {
    const bool far = side.first.depth_major && !side.source && side.first.lines * depth > far_elements<bfloat16>;
    for_each_block(side, first, end, k, steps,
                   [&](std::int64_t i, const gemm_operand<bfloat16>& from, std::int64_t line, std::int64_t last,
                       std::int64_t start) {
                     pack_blocks(from, left, line, last, start, steps, far, to + (i - first) * up(steps, tile_depth));
                   });
  }

  void multiply_strip(std::int64_t row, std::int64_t last_row, std::int64_t column, std::int64_t last_column,
                      std::int64_t k, std::int64_t steps, const bfloat16* packed_a, bool far) const {
    const std::int64_t padded = up(steps, tile_depth);
    const bfloat16* const packed_b = packed_a + a_room;
    for (std::int64_t i = row; i < last_row; i += block, packed_a += block * padded) {
      const std::int64_t rows = std::min(block, last_row - i);
      for (std::int64_t j = column; j < last_column; j += block) {
        float* const to = c + i * c_step + j;
        const bool add = accumulate || k > 0;
        if (far) ask_for_block(to + (add ? block : 0), rows);
        multiply_block(padded, packed_a, packed_b + (j - column) * padded, rows, std::min(block, last_column - j), to,
                       add);
      }
      if (finish && k + steps == depth)
        finish.run(finish.context, finished_group, i, rows, column, last_column - column);
    }
  }

  /// Asks for the memory of a block of C before it is computed, or of the next one where blocks are read first.
  void ask_for_block(const float* at, std::int64_t rows) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < block; j += tile_lines) __builtin_prefetch(at + i * c_step + j, 1, 3);
  }

  /// At least the first `rows` rows of a block.
  static void multiply_whole_block(std::int64_t padded, const bfloat16* left, const bfloat16* right, std::int64_t rows,
                                   float* to, std::int64_t step, bool add) {
#if defined(TESSERA_HAS_AMX)
    if (has_matrix_registers()) return multiply_tiles(padded, left, right, to, step, add);
#endif
    multiply_tiles_in_vectors(padded, left, right, to, step, add, rows);
  }

  /// A block of C, by way of a whole one where it is smaller.
  void multiply_block(std::int64_t padded, const bfloat16* left, const bfloat16* right, std::int64_t rows,
                      std::int64_t columns, float* to, bool add) const {
    if (rows == block && columns == block) return multiply_whole_block(padded, left, right, block, to, c_step, add);
    alignas(64) float whole[block * block]{};
    if (add)
      for (std::int64_t i = 0; i < rows; ++i) std::copy_n(to + i * c_step, columns, whole + i * block);
    multiply_whole_block(padded, left, right, rows, whole, block, add);
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(whole + i * block, columns, to + i * c_step);
  }
};

}  // namespace tessera::kernels::detail

#endif
