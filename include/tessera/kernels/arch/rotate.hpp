// SPDX-License-Identifier: Apache-2.0
// Rotation of the bits of 32-bit lanes by a number that is known; xsimd 8.1 has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <tessera/kernels/arch/xsimd.hpp>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace tessera::kernels::detail {

/// Each lane rotated to the left by Bytes, with the compiler's shuffle.
template <int Bytes, std::size_t... I>
xsimd::batch<std::uint32_t> rotate_bytes(const xsimd::batch<std::uint32_t>& x, std::index_sequence<I...>) {
  using vector [[gnu::vector_size(sizeof(xsimd::batch<std::uint32_t>))]] = unsigned char;
  const auto bytes = __builtin_bit_cast(vector, x.data);
  const vector turned = __builtin_shufflevector(bytes, bytes, (I / 4 * 4 + (I + 4 - Bytes) % 4)...);
  return __builtin_bit_cast(xsimd::batch<std::uint32_t>::register_type, turned);
}

/// Each lane rotated to the left by By bits, 0 < By < 32: one instruction on AVX-512, whole bytes by one shuffle.
template <int By>
xsimd::batch<std::uint32_t> rotate_left(const xsimd::batch<std::uint32_t>& x) {
  static_assert(By > 0 && By < 32);
#if defined(__AVX512F__)
  // Not the plain form: g++ 12 warns of the undefined operand in it.
  return _mm512_maskz_rol_epi32(static_cast<__mmask16>(-1), x, By);
#else
  if constexpr (By % 8 == 0) return rotate_bytes<By / 8>(x, std::make_index_sequence<sizeof(x)>{});
  else return (x << By) | (x >> (32 - By));
#endif
}

}  // namespace tessera::kernels::detail
