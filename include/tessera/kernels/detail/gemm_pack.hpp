// SPDX-License-Identifier: Apache-2.0
// Copies part of a matrix operand into the order in which the inner loop of matrix multiplication reads it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/kernels/arch/transpose.hpp>
#include <tessera/kernels/detail/gemm_tile.hpp>
#include <tessera/kernels/detail/simd.hpp>
#include <tessera/kernels/gemm_problem.hpp>

namespace tessera::kernels::detail {

/// Either operand of a product: `lines` are the rows of A or the columns of B, and each line runs along the depth k. In
/// memory a step of the depth is a row (depth_major: B as it is, A transposed) or each line is (A as it is, B
/// transposed).
template <class T>
struct gemm_operand {
  const T* data = nullptr;
  std::int64_t leading = 0;
  std::int64_t lines = 0;
  bool depth_major = false;

  const T* at(std::int64_t line, std::int64_t depth) const {
    return data + (depth_major ? depth * leading + line : line * leading + depth);
  }
};

/// Where some lines of an operand lie, over some steps.
template <class T>
gemm_rows rows_of(const gemm_operand<T>& operand, std::int64_t line, std::int64_t lines, gemm_steps steps) {
  const auto size = static_cast<std::int64_t>(sizeof(T));
  return {reinterpret_cast<const char*>(operand.at(line, steps.start)), operand.depth_major ? steps.depth : lines,
          (operand.depth_major ? lines : steps.depth) * size, operand.leading * size};
}

/// One side of a product, of all its groups.
template <class T>
struct gemm_side {
  gemm_operand<T> first;  ///< of group 0
  std::int64_t stride = 0;
  gemm_source<T> source;
  bool shared = false;  ///< all groups have that of group 0

  gemm_operand<T> of(std::int64_t group) const {
    return {first.data + group * stride, first.leading, first.lines, first.depth_major};
  }

  /// Asks the source for lines [line, line + lines) of steps [start, start + depth).
  void make(std::int64_t group, std::int64_t line, std::int64_t lines, std::int64_t start, std::int64_t depth,
            T* to) const {
    const std::int64_t of = shared ? 0 : group;
    if (first.depth_major) source.run(source.context, of, start, depth, line, lines, to, lines);
    else source.run(source.context, of, line, lines, start, depth, to, depth);
  }

  /// What make() wrote, as an operand of its own.
  gemm_operand<T> made(const T* at, std::int64_t lines, std::int64_t depth) const {
    return {at, first.depth_major ? lines : depth, lines, first.depth_major};
  }
};

template <class T>
gemm_side<T> left_side(const gemm_problem<T>& p) {
  return {{p.a, p.lda, p.m, p.a_transposed}, p.a_stride, p.a_source, p.a_stride == 0};
}

template <class T>
gemm_side<T> right_side(const gemm_problem<T>& p) {
  return {{p.b, p.ldb, p.n, !p.b_transposed}, p.b_stride, p.b_source, p.b_stride == 0};
}

/// The lines from `line` on and the steps from `start` on of an operand, from some group on, as the operand of a
/// smaller product. Must outlive that.
template <class T>
class part_of_side {
 public:
  part_of_side(const gemm_side<T>& side, std::int64_t group, std::int64_t line, std::int64_t start)
      : data(side.source ? nullptr : side.of(group).at(line, start)),
        whole_(side.source),
        group_(side.shared ? 0 : group),
        row_(side.first.depth_major ? start : line),
        column_(side.first.depth_major ? line : start) {}

  const T* const data;  ///< where it begins in memory

  gemm_source<T> source() const {
    if (!whole_) return {};
    return {[](const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
               std::int64_t columns, T* to, std::int64_t leading) {
              const auto& part = *static_cast<const part_of_side*>(context);
              part.whole_.run(part.whole_.context, part.group_ + group, part.row_ + row, rows, part.column_ + column,
                              columns, to, leading);
            },
            this};
  }

 private:
  gemm_source<T> whole_;
  std::int64_t group_, row_, column_;  ///< where it begins in the stored matrix
};

/// to[p * step + i] = from[p * leading + i] for i < lines, 0 for lines <= i < step. 16-bit elements become floats.
template <class T>
void pack_rows(const T* from, std::int64_t leading, std::int64_t lines, std::int64_t depth, compute_t<T>* to,
               std::int64_t step) {
  constexpr std::int64_t w = width<T>;
  constexpr std::int64_t few = tile_rows<T>;
  if (lines == few && step == few) {
    for (std::int64_t p = 0; p < depth; ++p, from += leading, to += few)
      if constexpr (std::is_same_v<T, compute_t<T>>) std::memcpy(to, from, few * sizeof(T));
      else unrolled<few>([&](auto i) { to[i] = compute_t<T>{from[i]}; });
    return;
  }
  if (step < w) {  // where there is room, with whole stores: what they write too much is overwritten by the next
    for (std::int64_t p = 0, left = depth * step; p < depth; ++p, from += leading, to += step, left -= step) {
      const batch<T> values = load_part(from, lines, compute_t<T>{0});
      if (left >= w) values.store_unaligned(to);
      else store_part(to, step, values);
    }
    return;
  }
  if (lines < step) {
    for (std::int64_t p = 0; p < depth; ++p, from += leading, to += step)
      for (std::int64_t i = 0; i < step; i += w)
        store_part(to + i, step - i, load_part(from + i, lines - i, compute_t<T>{0}));
    return;
  }
  for (std::int64_t p = 0; p < depth; ++p, from += leading, to += step) {
    for (std::int64_t i = 0; i < lines - w; i += w) load_whole(from + i).store_unaligned(to + i);
    load_whole(from + lines - w).store_unaligned(to + lines - w);
  }
}

/// to[p * step + i] = from[i * leading + p] for i < lines, 0 for lines <= i < step. May write up to width - 1 elements
/// after the last step: where a step is shorter than a vector, each store is completed by the one that follows it.
template <class T>
void pack_columns(const T* from, std::int64_t leading, std::int64_t lines, std::int64_t depth, compute_t<T>* to,
                  std::int64_t step) {
  constexpr std::int64_t w = width<T>;
  const std::int64_t at_once = std::min(w, depth);
  for (std::int64_t line = 0; line < step; line += w) {
    const std::int64_t first = std::max<std::int64_t>(std::min(line, step - w), 0);
    const std::int64_t full = std::clamp<std::int64_t>(lines - first, 0, w);
    for (std::int64_t block = 0; block < depth; block += w) {
      const std::int64_t start = std::min(block, depth - at_once);
      batch<T> square[static_cast<std::size_t>(w)];
      for (std::int64_t i = 0; i < w; ++i)
        square[i] = i < full ? load_part(from + (first + i) * leading + start, at_once, compute_t<T>{0})
                             : batch<T>(compute_t<T>{0});
      transpose<compute_t<T>>(square);
      for (std::int64_t i = 0; i < at_once; ++i) square[i].store_unaligned(to + (start + i) * step + first);
    }
  }
}

/// to[j * to_leading + i] = from[i * leading + j] for i < rows and j < columns.
template <class T>
void copy_transposed(const T* from, std::int64_t leading, std::int64_t rows, std::int64_t columns, T* to,
                     std::int64_t to_leading) {
  constexpr std::int64_t w = width<T>;
  for (std::int64_t j = 0; j < columns; j += w)  // what is written row by row may be far away
    for (std::int64_t i = 0; i < rows; i += w) {
      batch<T> square[static_cast<std::size_t>(w)];
      for (std::int64_t r = 0; r < w; ++r)
        square[r] = i + r < rows ? load_part(from + (i + r) * leading + j, columns - j, T(0)) : batch<T>(T(0));
      transpose<T>(square);
      for (std::int64_t c = 0; c < std::min(w, columns - j); ++c)
        store_part(to + (j + c) * to_leading + i, rows - i, square[c]);
    }
}

/// to[i * to_leading + p] = from[i * leading + p] for i < lines and p < depth.
template <class T>
void pack_lines(const T* from, std::int64_t leading, std::int64_t lines, std::int64_t depth, compute_t<T>* to,
                std::int64_t to_leading) {
  constexpr std::int64_t w = width<T>;
  for (std::int64_t i = 0; i < lines; ++i, from += leading, to += to_leading) {
    if (depth < w) {
      for (std::int64_t p = 0; p < depth; ++p) to[p] = compute_t<T>{from[p]};
      continue;
    }
    for (std::int64_t p = 0; p < depth - w; p += w) load_whole(from + p).store_unaligned(to + p);
    load_whole(from + depth - w).store_unaligned(to + depth - w);
  }
}

/// to[p * step + i] = element (line + i) of step (start + p) of the operand; 0 for lines <= i < step. Where `by_lines`,
/// of an operand that is not depth_major, to[i * step + p] instead, and no zeros.
template <class T>
void pack(const gemm_operand<T>& operand, std::int64_t line, std::int64_t lines, std::int64_t start, std::int64_t depth,
          compute_t<T>* to, std::int64_t step, bool by_lines) {
  const T* const from = operand.at(line, start);
  if (operand.depth_major) pack_rows(from, operand.leading, lines, depth, to, step);
  else if (by_lines) pack_lines(from, operand.leading, lines, depth, to, step);
  else pack_columns(from, operand.leading, lines, depth, to, step);
}

}  // namespace tessera::kernels::detail
