// SPDX-License-Identifier: Apache-2.0
// Masks over lanes as bytes 0 and 1, where there are instructions that narrow a whole vector.
#pragma once

#include <cstring>
#include <type_traits>

#include <tessera/kernels/arch/xsimd.hpp>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace tessera::kernels::detail {

/// Whether store_packed is there.
template <class T>
inline constexpr bool packs_masks =
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    true;
#elif !defined(__AVX512F__) && (defined(__AVX2__) || (defined(__SSE2__) && !defined(__AVX__)))
    std::is_same_v<T, float>;
#else
    false;
#endif

/// A byte a lane: 1 where the mask holds, else 0.
template <class T>
void store_packed(unsigned char* to, const xsimd::batch_bool<T>& mask) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const __m128i bytes = _mm_maskz_mov_epi8(static_cast<__mmask16>(mask.data), _mm_set1_epi8(1));
  std::memcpy(to, &bytes, xsimd::batch<T>::size);
#elif defined(__AVX2__) && !defined(__AVX512F__)
  const __m256i lanes = _mm256_castps_si256(mask.data);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
  std::memcpy(to, &bytes, 8);
#elif defined(__SSE2__) && !defined(__AVX__)
  const __m128i words = _mm_packs_epi32(_mm_castps_si128(mask.data), _mm_castps_si128(mask.data));
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
  std::memcpy(to, &bytes, 4);
#else
  static_cast<void>(to), static_cast<void>(mask);
#endif
}

}  // namespace tessera::kernels::detail
