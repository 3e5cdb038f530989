// SPDX-License-Identifier: Apache-2.0
// Adding up windows where they overlap.
#pragma once

#include <tessera/kernels/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tessera::kernels {

/// Along one dimension of the sum: its extent, how many windows of which size, how far apart windows and elements are.
struct overlap_windows {
  std::int64_t extent = 1, count = 1, size = 1, stride = 1, dilation = 1;

  /// The window whose element `k` stands at `place`, or -1.
  std::int64_t window(std::int64_t place, std::int64_t k) const {
    const std::int64_t first = place - k * dilation;
    return first >= 0 && first % stride == 0 && first / stride < count ? first / stride : -1;
  }
};

/// Windows (O, I, J, K, L, C): outer, numbers of windows along both dimensions, positions within, inner. Their sum is
/// (O, H, W, C).
struct overlap_problem {
  std::int64_t outer = 1, inner = 1;
  overlap_windows windows[2]{};

  /// Elements of all windows.
  std::int64_t size() const {
    return outer * windows[0].count * windows[1].count * windows[0].size * windows[1].size * inner;
  }
};

template <class T>
void add_row(T* sum, const T* in, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) {
    if constexpr (std::is_integral_v<T>)
      sum[c] = static_cast<T>(static_cast<std::uint32_t>(sum[c]) + static_cast<std::uint32_t>(in[c]));
    else sum[c] += in[c];
  }
}

/// out[o, h, w, c] = sum of in[o, i, j, k, l, c] where h = i stride + k dilation, and w likewise of j and l. Windows
/// that started last come first, so the order of a sum is fixed. A task has rows (o, h) of its own.
template <class T>
void overlap_add(const overlap_problem& p, const T* in, T* out, bool parallel) {
  const auto& [a, b] = p.windows;
  parallel_for(p.outer * a.extent, parallel, [&](std::int64_t row) {
    const std::int64_t o = row / a.extent;
    const std::int64_t h = row % a.extent;
    T* sums = out + row * b.extent * p.inner;
    std::fill_n(sums, b.extent * p.inner, T(0));
    for (std::int64_t k = 0; k < a.size; ++k) {
      const std::int64_t i = a.window(h, k);
      if (i < 0) continue;
      for (std::int64_t w = 0; w < b.extent; ++w)
        for (std::int64_t l = 0; l < b.size; ++l)
          if (const std::int64_t j = b.window(w, l); j >= 0)
            add_row(sums + w * p.inner, in + ((((o * a.count + i) * b.count + j) * a.size + k) * b.size + l) * p.inner,
                    p.inner);
    }
  });
}

}  // namespace tessera::kernels
