// SPDX-License-Identifier: Apache-2.0
// Moving the upper lanes of a vector down, in registers where there is an instruction for it.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tessera/kernels/arch/xsimd.hpp>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace tessera::kernels::detail {

/// Whether moved_down is there.
template <class T>
inline constexpr bool moves_down =
#if defined(__AVX512F__)
    std::is_same_v<T, float>;
#else
    false;
#endif

/// Lane i is lane i + By of x, for i < By; By is 8, 4, 2 or 1.
template <int By>
xsimd::batch<float> moved_down(const xsimd::batch<float>& x) {
#if defined(__AVX512F__)
  if constexpr (By == 8) return _mm512_maskz_shuffle_f32x4(0xffff, x, x, 0x4e);
  else if constexpr (By == 4) return _mm512_maskz_shuffle_f32x4(0xffff, x, x, 0xb1);
  else if constexpr (By == 2) return _mm512_maskz_permute_ps(0xffff, x, 0x4e);
  else return _mm512_maskz_permute_ps(0xffff, x, 0xb1);
#else
  return x;
#endif
}

}  // namespace tessera::kernels::detail
