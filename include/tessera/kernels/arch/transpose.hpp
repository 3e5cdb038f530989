// SPDX-License-Identifier: Apache-2.0
// Transposes a square of vectors in registers; written with the compiler's shuffles because xsimd 8.1's zip_lo and
// zip_hi interleave whole vectors on some instruction sets and 128-bit lanes on others.
#pragma once

#include <cstddef>
#include <utility>

#include <tessera/kernels/arch/xsimd.hpp>

namespace tessera::kernels::detail {

/// zip<High>(a, b)[2 i] = a[i + h], [2 i + 1] = b[i + h], where h is half the width if High, else 0.
template <bool High, class T, std::size_t... I>
xsimd::batch<T> zip(const xsimd::batch<T>& a, const xsimd::batch<T>& b, std::index_sequence<I...>) {
  constexpr std::size_t size = sizeof...(I);
  using vector [[gnu::vector_size(size * sizeof(T))]] = T;
  const auto x = __builtin_bit_cast(vector, a.data);
  const auto y = __builtin_bit_cast(vector, b.data);
  const vector z = __builtin_shufflevector(x, y, ((High ? size / 2 : 0) + I / 2 + (I % 2 == 0 ? 0 : size))...);
  return __builtin_bit_cast(typename xsimd::batch<T>::register_type, z);
}

/// rows[i][j] becomes rows[j][i]. Each of the log2(width) rounds pairs row i with row i + width / 2.
template <class T>
void transpose(xsimd::batch<T> (&rows)[xsimd::batch<T>::size]) {
  constexpr std::size_t size = xsimd::batch<T>::size;
  constexpr auto lanes = std::make_index_sequence<size>{};
  for (std::size_t round = 1; round < size; round *= 2) {
    xsimd::batch<T> next[size];
    for (std::size_t i = 0; i < size / 2; ++i) {
      next[2 * i] = zip<false>(rows[i], rows[i + size / 2], lanes);
      next[2 * i + 1] = zip<true>(rows[i], rows[i + size / 2], lanes);
    }
    for (std::size_t i = 0; i < size; ++i) rows[i] = next[i];
  }
}

}  // namespace tessera::kernels::detail
