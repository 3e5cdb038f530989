// SPDX-License-Identifier: Apache-2.0
// What work that memory bounds is compared with: copies, on the threads that the kernels work on.
#pragma once

#include <tessera/kernels/arch/xsimd.hpp>
#include <tessera/kernels/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace bench {

/// Copies one array of floats to another, each thread a part.
struct copies {
  std::vector<float> from;
  mutable std::vector<float> to;

  explicit copies(std::int64_t size) : from(static_cast<std::size_t>(size), 1.5F), to(from.size()) {}

  /// Bytes that are read and written.
  double bytes() const { return 2.0 * sizeof(float) * static_cast<double>(from.size()); }

  void by_memcpy() const {
    in_parts([](float* into, const float* out_of, std::int64_t count) {
      std::memcpy(into, out_of, static_cast<std::size_t>(count) * sizeof(float));
    });
  }
  /// By loads and stores of whole vectors.
  void by_loop() const {
    in_parts([](float* into, const float* out_of, std::int64_t count) {
      using batch = xsimd::batch<float>;
      constexpr auto width = static_cast<std::int64_t>(batch::size);
      std::int64_t i = 0;
      for (; i + width <= count; i += width) batch::load_unaligned(out_of + i).store_unaligned(into + i);
      for (; i < count; ++i) into[i] = out_of[i];
    });
  }

 private:
  template <class F>
  void in_parts(F f) const {
    constexpr std::int64_t part = 1 << 16;
    const auto n = static_cast<std::int64_t>(from.size());
    tessera::kernels::parallel_for((n + part - 1) / part, n > part, [&](std::int64_t i) {
      f(to.data() + i * part, from.data() + i * part, std::min(part, n - i * part));
    });
  }
};

}  // namespace bench
