// SPDX-License-Identifier: Apache-2.0
// Fused multiply-add of vectors; xsimd 8.1 multiplies and adds separately on AVX-512, which takes twice as long and
// rounds twice.
#pragma once

#include <type_traits>

#include <tessera/kernels/arch/xsimd.hpp>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace tessera::kernels::detail {

/// x * y + z, rounded once wherever the instruction set can (AVX-512, FMA3, NEON), else twice.
template <class T>
xsimd::batch<T> fma(const xsimd::batch<T>& x, const xsimd::batch<T>& y, const xsimd::batch<T>& z) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) return _mm512_fmadd_ps(x, y, z);
  if constexpr (std::is_same_v<T, double>) return _mm512_fmadd_pd(x, y, z);
#endif
  return xsimd::fma(x, y, z);
}

}  // namespace tessera::kernels::detail
