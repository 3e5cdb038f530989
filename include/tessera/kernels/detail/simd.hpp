// SPDX-License-Identifier: Apache-2.0
// The vector type of the target's best instruction set, and loads and stores of less than a whole vector.
#pragma once

#include <cstdint>

#include <tessera/kernels/arch/first_lanes.hpp>
#include <tessera/kernels/arch/sixteen_bits.hpp>
#include <tessera/kernels/arch/xsimd.hpp>

namespace tessera::kernels::detail {

/// Elements in registers: 16-bit numbers are floats there.
template <class T>
using batch = xsimd::batch<compute_t<T>>;

template <class T>
inline constexpr std::int64_t width = static_cast<std::int64_t>(batch<T>::size);

template <class T>
batch<T> load_whole(const T* p) {
  if constexpr (is_small_float<T>) return load_widened(p);
  else return batch<T>::load_unaligned(p);
}
template <class T>
void store_whole(T* p, const batch<T>& v) {
  if constexpr (is_small_float<T>) store_rounded(p, v);
  else v.store_unaligned(p);
}

/// The first min(count, width) elements at `p`, then `fill`; reads nothing else. With count >= width this is one plain
/// load.
template <class T>
batch<T> load_part(const T* p, std::int64_t count, compute_t<T> fill) {
  if (count >= width<T>) [[likely]]
    return load_whole(p);
  if constexpr (has_first_lanes<T>) return load_first(p, count, batch<T>(fill));
  alignas(batch<T>) compute_t<T> padded[width<T>];
  for (std::int64_t i = 0; i < width<T>; ++i) padded[i] = i < count ? compute_t<T>{p[i]} : fill;
  return batch<T>::load_aligned(padded);
}

/// Stores the first min(count, width) elements of `v` at `p`; writes nothing else.
template <class T>
void store_part(T* p, std::int64_t count, const batch<T>& v) {
  if (count >= width<T>) [[likely]] {
    store_whole(p, v);
    return;
  }
  if constexpr (has_first_lanes<T>) return store_first(p, count, v);
  alignas(batch<T>) compute_t<T> padded[width<T>];
  v.store_aligned(padded);
  for (std::int64_t i = 0; i < count; ++i) p[i] = static_cast<T>(padded[i]);
}

}  // namespace tessera::kernels::detail
