// SPDX-License-Identifier: Apache-2.0
// The inner loop of matrix multiplication: one tile of C, held in registers while it runs along the depth k.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tessera/kernels/arch/fma.hpp>
#include <tessera/kernels/detail/simd.hpp>

namespace tessera::kernels::detail {

/// A tile is tile_rows x (tile_vectors * width) elements: 24 of the 32 vector registers of AVX-512, 12 of 16 elsewhere;
/// the rest hold one row of B and one element of A. More rows spill.
template <class T>
inline constexpr int tile_rows = sizeof(batch<T>) == 64 ? 12 : 6;

inline constexpr int tile_vectors = 2;

template <class T>
inline constexpr std::int64_t tile_columns = tile_vectors* width<T>;

/// Calls f(0), ..., f(Count - 1) with constants: unlike a loop, leaves an array indexed by them in registers.
template <int Count, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, Count>{});
}

/// c[i * c_step + j] (+)= sum over p < depth, in order, of a[p * a_step + i] * b[p * b_step + j], for i < Rows and
/// j < Vectors * width.
template <class T, int Rows, int Vectors>
void gemm_tile(std::int64_t depth, const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, T* c,
               std::int64_t c_step, bool accumulate) {
  batch<T> sum[std::size_t{Rows * Vectors}];
  unrolled<Rows * Vectors>([&](auto i) { sum[i] = batch<T>(T(0)); });
  for (std::int64_t p = 0; p < depth; ++p, a += a_step, b += b_step) {
    batch<T> row[std::size_t{Vectors}];
    unrolled<Vectors>([&](auto j) { row[j] = batch<T>::load_unaligned(b + j * width<T>); });
    unrolled<Rows>([&](auto i) {
      const batch<T> element(a[i]);
      unrolled<Vectors>([&](auto j) { sum[i * Vectors + j] = fma(element, row[j], sum[i * Vectors + j]); });
    });
  }
  unrolled<Rows>([&](auto i) {
    unrolled<Vectors>([&](auto j) {
      T* const place = c + j * width<T>;
      const batch<T> value = sum[i * Vectors + j];
      (accumulate ? batch<T>::load_unaligned(place) + value : value).store_unaligned(place);
    });
    c += c_step;
  });
}

template <class T>
using gemm_tile_function = void (*)(std::int64_t, const T*, std::int64_t, const T*, std::int64_t, T*, std::int64_t,
                                    bool);

/// gemm_tiles<T, Vectors>[rows - 1] is the tile of that many rows.
template <class T, int Vectors>
inline constexpr auto gemm_tiles = []<int... I>(std::integer_sequence<int, I...>) {
  return std::array<gemm_tile_function<T>, sizeof...(I)>{gemm_tile<T, I + 1, Vectors>...};
}
(std::make_integer_sequence<int, tile_rows<T>>{});

/// The same for any count of columns up to tile_columns: those beyond `columns` are computed from B's padding and
/// dropped.
template <class T>
void gemm_tile_any(std::int64_t rows, std::int64_t columns, std::int64_t depth, const T* a, std::int64_t a_step,
                   const T* b, std::int64_t b_step, T* c, std::int64_t c_step, bool accumulate) {
  const auto index = static_cast<std::size_t>(rows - 1);
  const auto tile = columns > width<T> ? gemm_tiles<T, tile_vectors>[index] : gemm_tiles<T, 1>[index];
  if (columns == width<T> || columns == tile_columns<T>) {
    tile(depth, a, a_step, b, b_step, c, c_step, accumulate);
    return;
  }
  alignas(64) T padded[tile_rows<T> * tile_columns<T>];
  tile(depth, a, a_step, b, b_step, padded, tile_columns<T>, false);
  for (std::int64_t i = 0; i < rows; ++i) {
    T* const to = c + i * c_step;
    const T* const from = padded + i * tile_columns<T>;
    for (std::int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + from[j] : from[j];
  }
}

}  // namespace tessera::kernels::detail
