// SPDX-License-Identifier: Apache-2.0
// Intel's matrix registers: whether this process may use them, and products of tiles of bfloat16 in them.
#pragma once

#include <tessera/kernels/arch/bfloat16_tiles.hpp>

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(TESSERA_HAS_BFLOAT16_TILES) && defined(__linux__)
#define TESSERA_HAS_AMX 1

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tessera::kernels::detail {

/// Asks the system for the registers, once in a process.
inline bool has_matrix_registers() {
  static const bool granted = [] {
    constexpr long request_permission = 0x1023;
    constexpr long tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return granted;
}

/// While it lives, this thread's eight matrix registers are 16 rows of 64 bytes.
class matrix_registers {
 public:
  matrix_registers() {
    struct {
      std::uint8_t palette = 1;
      std::uint8_t start_row = 0;
      std::uint8_t reserved[14]{};
      std::uint16_t row_bytes[16]{};
      std::uint8_t rows[16]{};
    } shape;
    for (int i = 0; i < 8; ++i) shape.row_bytes[i] = 64, shape.rows[i] = 16;
    _tile_loadconfig(&shape);
  }
  matrix_registers(const matrix_registers&) = delete;
  matrix_registers& operator=(const matrix_registers&) = delete;
  ~matrix_registers() { _tile_release(); }
};

/// All 32 rows of what multiply_tiles_in_vectors computes, which adds the steps in another order.
///
/// Five of the eight registers are used, never more, so that loads find free ones behind them: where another thread
/// works on the same core, half as many are there, and with eight in use each load waits for the products before it.
inline void multiply_tiles(std::int64_t depth, const bfloat16* a, const bfloat16* b, float* c, std::int64_t c_step,
                           bool accumulate) {
  constexpr std::int64_t tile = tile_lines * tile_depth;
  constexpr std::int64_t row_bytes = 64;
  const std::int64_t c_bytes = c_step * static_cast<std::int64_t>(sizeof(float));
  for (int column = 0; column < 2; ++column, c += tile_lines) {
    float* const below = c + tile_lines * c_step;
    if (accumulate) {
      _tile_loadd(0, c, c_bytes);
      _tile_loadd(1, below, c_bytes);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    const bfloat16* left = a;
    const bfloat16* left_below = a + depth * tile_lines;
    for (std::int64_t k = 0; k < depth; k += tile_depth, left += tile, left_below += tile, b += tile) {
      _tile_loadd(4, b, row_bytes);
      _tile_loadd(2, left, row_bytes);
      _tile_dpbf16ps(0, 2, 4);
      _tile_loadd(3, left_below, row_bytes);
      _tile_dpbf16ps(1, 3, 4);
    }
    _tile_stored(0, c, c_bytes);
    _tile_stored(1, below, c_bytes);
  }
}

}  // namespace tessera::kernels::detail

#else

namespace tessera::kernels::detail {

inline bool has_matrix_registers() { return false; }
struct matrix_registers {};

}  // namespace tessera::kernels::detail

#endif
