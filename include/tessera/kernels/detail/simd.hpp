// SPDX-License-Identifier: Apache-2.0
// The vector type of the target's best instruction set, and loads and stores of less than a whole vector.
#pragma once

#include <cstdint>

#include <tessera/kernels/arch/xsimd.hpp>

namespace tessera::kernels::detail {

template <class T>
using batch = xsimd::batch<T>;

template <class T>
inline constexpr std::int64_t width = static_cast<std::int64_t>(batch<T>::size);

/// The first min(count, width) elements at `p`, then `fill`; reads nothing else. With count >= width this is one plain
/// load.
template <class T>
batch<T> load_part(const T* p, std::int64_t count, T fill) {
  if (count >= width<T>) [[likely]]
    return batch<T>::load_unaligned(p);
  alignas(batch<T>) T padded[width<T>];
  for (std::int64_t i = 0; i < width<T>; ++i) padded[i] = i < count ? p[i] : fill;
  return batch<T>::load_aligned(padded);
}

/// Stores the first min(count, width) elements of `v` at `p`; writes nothing else.
template <class T>
void store_part(T* p, std::int64_t count, const batch<T>& v) {
  if (count >= width<T>) [[likely]] {
    v.store_unaligned(p);
    return;
  }
  alignas(batch<T>) T padded[width<T>];
  v.store_aligned(padded);
  for (std::int64_t i = 0; i < count; ++i) p[i] = padded[i];
}

}  // namespace tessera::kernels::detail
