// SPDX-License-Identifier: Apache-2.0
// Vectors of 16-bit floating-point numbers as vectors of float and back: by the processor's conversions where their
// bits are those of core/sixteen_bits.hpp, else by operations on whole numbers. (AVX-512's own conversion to bfloat16
// takes subnormals for zeros, so it is not used; its other ones are called with a mask of all lanes, since g++ 12 takes
// the undefined operands of the plain ones for uninitialised variables.)
#pragma once

#include <tessera/core/sixteen_bits.hpp>
#include <tessera/kernels/arch/xsimd.hpp>

#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tessera::kernels::detail {

/// Lanes of a vector of float as whole numbers and as halves, for the compiler's own vector operations.
template <int Lanes>
struct lane_bits {
  using words [[gnu::vector_size(4 * Lanes)]] = std::uint32_t;
  using floats [[gnu::vector_size(4 * Lanes)]] = float;
  using halves [[gnu::vector_size(2 * Lanes)]] = std::uint16_t;
};

using float_bits = lane_bits<static_cast<int>(xsimd::batch<float>::size)>;

#if defined(__AVX512F__)
inline constexpr __mmask16 all_lanes = 0xffff;
#endif

inline float_bits::words words_of(const xsimd::batch<float>& x) {
  return __builtin_bit_cast(float_bits::words, x.data);
}
inline xsimd::batch<float> batch_of(const float_bits::words& bits) {
  return __builtin_bit_cast(xsimd::batch<float>::register_type, bits);
}

/// All ones where the lane is NaN.
inline float_bits::words nan_lanes(const float_bits::words& bits) { return (bits & 0x7fffffffU) > 0x7f800000U; }
inline float_bits::words chosen(const float_bits::words& mask, const float_bits::words& a, const float_bits::words& b) {
  return (mask & a) | (~mask & b);
}

/// The upper halves of floats, rounded to the nearest bfloat16, in the upper halves of the lanes; below are zeros.
inline float_bits::words rounded_to_upper_half(const float_bits::words& bits) {
  const float_bits::words rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return chosen(nan_lanes(bits), bits | 0x400000U, rounded) & 0xffff0000U;
}

/// As float16_format::from_float, in every lane.
inline float_bits::words to_float16_bits(const float_bits::words& bits) {
  const float_bits::words rest = bits & 0x7fffffffU;
  const float_bits::words normal = (rest - float16_format::rebias + 0xfffU + ((rest >> 13) & 1U)) >> 13;
  const auto shifted = __builtin_bit_cast(float_bits::floats, rest) + 0.5F;
  const float_bits::words small = __builtin_bit_cast(float_bits::words, shifted) - 0x3f000000U;
  float_bits::words half = chosen(rest >= float16_format::smallest_normal, normal, small);
  half = chosen(rest >= float16_format::too_large, float_bits::words{} + 0x7c00U, half);
  half = chosen(nan_lanes(bits), 0x7e00U | ((rest >> 13) & 0x3ffU), half);
  return half | ((bits >> 16) & 0x8000U);
}

/// As float16_format::to_float, in every lane.
inline float_bits::words from_float16_bits(const float_bits::words& half) {
  const float_bits::words rest = (half & 0x7fffU) << 13;
  const float_bits::words infinite = 0x7f800000U | (rest & 0x7fffffU);
  const float_bits::words quiet = chosen((rest & 0x7fffffU) != 0U, infinite | 0x400000U, infinite);
  const auto magnitude = __builtin_convertvector(rest >> 13, float_bits::floats) * 0x1p-24F;
  float_bits::words bits =
      chosen(rest >= (1U << 23), rest + float16_format::rebias, __builtin_bit_cast(float_bits::words, magnitude));
  bits = chosen(rest >= (31U << 23), quiet, bits);
  return bits | ((half & 0x8000U) << 16);
}

inline float_bits::words load_halves(const void* from) {
  float_bits::halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return __builtin_convertvector(halves, float_bits::words);
}
inline void store_halves(void* to, const float_bits::words& lanes) {
  const auto halves = __builtin_convertvector(lanes, float_bits::halves);
  std::memcpy(to, &halves, sizeof halves);
}

inline xsimd::batch<float> load_widened(const bfloat16* from) { return batch_of(load_halves(from) << 16); }

inline void store_rounded(bfloat16* to, const xsimd::batch<float>& x) {
  store_halves(to, rounded_to_upper_half(words_of(x)) >> 16);
}

inline xsimd::batch<float> load_widened(const float16* from) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtph_ps(all_lanes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  return batch_of(from_float16_bits(load_halves(from)));
#endif
}

inline void store_rounded(float16* to, const xsimd::batch<float>& x) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtps_ph(all_lanes, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  store_halves(to, to_float16_bits(words_of(x)));
#endif
}

/// The nearest numbers of a 16-bit type, as floats.
template <class Small>
xsimd::batch<float> rounded_to(const xsimd::batch<float>& x) {
  if constexpr (std::is_same_v<Small, bfloat16>) {
    return batch_of(rounded_to_upper_half(words_of(x)));
  } else {
#if defined(__AVX512F__)
    return _mm512_maskz_cvtph_ps(all_lanes,
                                 _mm512_maskz_cvtps_ph(all_lanes, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    return batch_of(from_float16_bits(to_float16_bits(words_of(x))));
#endif
  }
}

}  // namespace tessera::kernels::detail
