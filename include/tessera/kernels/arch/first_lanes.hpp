// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the first lanes of a vector alone, where there is an instruction that touches no other memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tessera/kernels/arch/xsimd.hpp>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tessera::kernels::detail {

/// Whether load_first and store_first are there.
template <class T>
inline constexpr bool has_first_lanes =
#if defined(__AVX512F__) || defined(__AVX2__)
    std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);
#else
    false;
#endif

#if defined(__AVX512F__)

template <class T>
auto first_lanes(std::int64_t count) {
  using mask = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  return static_cast<mask>((1U << count) - 1U);
}

/// The first `count` elements at `p`, then those of `rest`; 0 <= count < the number of lanes.
template <class T>
xsimd::batch<T> load_first(const T* p, std::int64_t count, const xsimd::batch<T>& rest) {
  const auto lanes = first_lanes<T>(count);
  if constexpr (std::is_same_v<T, float>) return _mm512_mask_loadu_ps(rest, lanes, p);
  else if constexpr (std::is_same_v<T, double>) return _mm512_mask_loadu_pd(rest, lanes, p);
  else if constexpr (sizeof(T) == 4) return _mm512_mask_loadu_epi32(rest, lanes, p);
  else return _mm512_mask_loadu_epi64(rest, lanes, p);
}

/// Stores the first `count` elements of `v` at `p`; 0 <= count < the number of lanes.
template <class T>
void store_first(T* p, std::int64_t count, const xsimd::batch<T>& v) {
  const auto lanes = first_lanes<T>(count);
  if constexpr (std::is_same_v<T, float>) _mm512_mask_storeu_ps(p, lanes, v);
  else if constexpr (std::is_same_v<T, double>) _mm512_mask_storeu_pd(p, lanes, v);
  else if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(p, lanes, v);
  else _mm512_mask_storeu_epi64(p, lanes, v);
}

#elif defined(__AVX2__)

/// All bits of the first `count` lanes: a window of a row of ones, then zeros.
template <class T>
__m256i first_lanes(std::int64_t count) {
  using word = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  constexpr std::int64_t lanes = 32 / static_cast<std::int64_t>(sizeof(T));
  static constexpr auto window = [] {
    struct {
      word words[static_cast<std::size_t>(2 * lanes)]{};
    } ones;
    for (std::int64_t i = 0; i < lanes; ++i) ones.words[i] = -1;
    return ones;
  }();
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(window.words + lanes - count));
}

template <class T>
xsimd::batch<T> load_first(const T* p, std::int64_t count, const xsimd::batch<T>& rest) {
  const __m256i lanes = first_lanes<T>(count);
  if constexpr (std::is_same_v<T, float>)
    return _mm256_blendv_ps(rest, _mm256_maskload_ps(p, lanes), _mm256_castsi256_ps(lanes));
  else if constexpr (std::is_same_v<T, double>)
    return _mm256_blendv_pd(rest, _mm256_maskload_pd(p, lanes), _mm256_castsi256_pd(lanes));
  else if constexpr (sizeof(T) == 4)
    return _mm256_blendv_epi8(rest, _mm256_maskload_epi32(reinterpret_cast<const int*>(p), lanes), lanes);
  else return _mm256_blendv_epi8(rest, _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), lanes), lanes);
}

template <class T>
void store_first(T* p, std::int64_t count, const xsimd::batch<T>& v) {
  const __m256i lanes = first_lanes<T>(count);
  if constexpr (std::is_same_v<T, float>) _mm256_maskstore_ps(p, lanes, v);
  else if constexpr (std::is_same_v<T, double>) _mm256_maskstore_pd(p, lanes, v);
  else if constexpr (sizeof(T) == 4) _mm256_maskstore_epi32(reinterpret_cast<int*>(p), lanes, v);
  else _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), lanes, v);
}

#endif

}  // namespace tessera::kernels::detail
