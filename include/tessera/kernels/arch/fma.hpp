// SPDX-License-Identifier: Apache-2.0
// Fused multiply-add of vectors, which xsimd 8.1 does not have on AVX-512: it multiplies and adds there, which takes
// twice as long and rounds twice. Beside it what AVX-512 has one instruction for, scaling by powers of two and
// inverses, operands held in registers, and sums that stay in theirs.
#pragma once

#include <cstdint>
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

/// z - x * y and x * y - z, likewise.
template <class T>
xsimd::batch<T> fnma(const xsimd::batch<T>& x, const xsimd::batch<T>& y, const xsimd::batch<T>& z) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) return _mm512_fnmadd_ps(x, y, z);
  if constexpr (std::is_same_v<T, double>) return _mm512_fnmadd_pd(x, y, z);
#endif
  return xsimd::fnma(x, y, z);
}
template <class T>
xsimd::batch<T> fms(const xsimd::batch<T>& x, const xsimd::batch<T>& y, const xsimd::batch<T>& z) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) return _mm512_fmsub_ps(x, y, z);
  if constexpr (std::is_same_v<T, double>) return _mm512_fmsub_pd(x, y, z);
#endif
  return xsimd::fms(x, y, z);
}

/// x, held in a register on x86-64: or else the compiler reads it from memory again for each of a few multiply-adds.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> in_register(xsimd::batch<T> x) {
#if defined(__x86_64__)
  asm("" : "+v"(x.data));
#endif
  return x;
}

/// z + x * y, rounded like fma(), in z's register: left to itself g++ multiplies into x's and copies that back, a tenth
/// more instructions in loops that keep many sums.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> plus_product(xsimd::batch<T> z, xsimd::batch<T> x, xsimd::batch<T> y) {
#if defined(__FMA__)
  if constexpr (std::is_same_v<T, float>) asm("vfmadd231ps %2, %1, %0" : "+v"(z.data) : "v"(x.data), "v"(y.data));
  else asm("vfmadd231pd %2, %1, %0" : "+v"(z.data) : "v"(x.data), "v"(y.data));
  return z;
#else
  return fma(x, y, z);
#endif
}

/// x 2^n for n from -252 to 254, rounded once.
inline xsimd::batch<float> scaled(const xsimd::batch<float>& x, const xsimd::batch<float>& n) {
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(0xffff, x, n);  // the plain one gives false warnings
#else
  using integers = xsimd::batch<std::int32_t>;
  const auto power = [](const integers& to) {
    return xsimd::bitwise_cast<xsimd::batch<float> >((to + integers(127)) << 23);
  };
  const integers whole = xsimd::to_int(n), half = whole >> 1;
  return x * power(half) * power(whole - half);
#endif
}

/// 1 / x, of float32 to 14 binary digits where that is cheaper.
template <class T>
xsimd::batch<T> rough_inverse(const xsimd::batch<T>& x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) return _mm512_maskz_rcp14_ps(0xffff, x);
#endif
  return xsimd::batch<T>(T(1)) / x;
}

}  // namespace tessera::kernels::detail
