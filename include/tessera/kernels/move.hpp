// SPDX-License-Identifier: Apache-2.0
// Copying elements from one regular pattern of places to another.
#pragma once

#include <tessera/core/shape.hpp>
#include <tessera/kernels/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tessera::kernels {

/// Extents, and for both sides the element strides along them; what is written does not overlap what is read.
struct move_problem {
  int rank = 0;
  std::int64_t extents[max_rank]{};
  std::int64_t from_strides[max_rank]{};
  std::int64_t to_strides[max_rank]{};

  std::int64_t columns() const { return rank == 0 ? 1 : extents[rank - 1]; }
  std::int64_t rows() const {
    std::int64_t n = 1;
    for (int d = 0; d + 1 < rank; ++d) n *= extents[d];
    return n;
  }
};

/// `count` neighbours of one row, by distances between them.
template <class T>
void move_row(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t count) {
  if (from_stride == 1 && to_stride == 1)
    std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(count) * sizeof(T));
  else if (to_stride == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * from_stride];
  else
    for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
}

/// to[sum of i_d to_strides[d]] = from[sum of i_d from_strides[d]] for all i_d in [0, extents[d]).
template <class T>
void move(const T* from, T* to, const move_problem& p, bool parallel) {
  constexpr std::int64_t chunk = 16384;
  const std::int64_t rows = p.rows();
  const std::int64_t columns = p.columns();
  if (rows == 0 || columns == 0) return;
  const int last = p.rank - 1;
  const std::int64_t from_stride = p.rank == 0 ? 1 : p.from_strides[last];
  const std::int64_t to_stride = p.rank == 0 ? 1 : p.to_strides[last];
  const std::int64_t rows_a_task = std::max<std::int64_t>(1, chunk / columns);
  const std::int64_t pieces = (columns + chunk - 1) / chunk;
  parallel_for((rows + rows_a_task - 1) / rows_a_task * pieces, parallel, [&](std::int64_t task) {
    const std::int64_t first_column = task % pieces * chunk;
    const std::int64_t first_row = task / pieces * rows_a_task;
    for (std::int64_t row = first_row; row < std::min(rows, first_row + rows_a_task); ++row) {
      const T* source = from + first_column * from_stride;
      T* target = to + first_column * to_stride;
      std::int64_t rest = row;
      for (int d = last - 1; d >= 0; --d) {
        source += rest % p.extents[d] * p.from_strides[d];
        target += rest % p.extents[d] * p.to_strides[d];
        rest /= p.extents[d];
      }
      move_row(source, from_stride, target, to_stride, std::min(chunk, columns - first_column));
    }
  });
}

}  // namespace tessera::kernels
