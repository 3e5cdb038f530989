// SPDX-License-Identifier: Apache-2.0
// How a fused kernel is called.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// Arrays one fused call reads or writes at most.
inline constexpr int max_fused_arrays = 80;

/// The arguments of a fused kernel: extents, and for each source and result its memory and element strides. A source
/// without memory counts from `base`.
struct fused_call {
  int rank = 0;
  const std::int64_t* extents = nullptr;
  void* data[max_fused_arrays];
  const std::int64_t* strides[max_fused_arrays];
  std::int64_t base[max_fused_arrays];

  std::int64_t columns() const { return rank == 0 ? 1 : extents[rank - 1]; }
  std::int64_t rows() const {
    std::int64_t n = 1;
    for (int d = 0; d + 1 < rank; ++d) n *= extents[d];
    return n;
  }
};

/// Part of a call: rows (all dimensions but the last) and columns from, to.
struct fused_range {
  std::int64_t first_row, last_row, first_column, last_column;
};

using fused_function = void (*)(const fused_call&, const fused_range&);

}  // namespace tessera::kernels
