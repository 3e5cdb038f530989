// SPDX-License-Identifier: Apache-2.0
// Batches of Fashion-MNIST as the model takes them.
#pragma once

#include "batch.hpp"

#include <tessera/io/idx.hpp>
#include <tessera/random/permutation.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace fashion {

/// Pixels are scaled to mean 0 and deviation 1 of the training set.
inline constexpr float pixel_mean = 0.2860F;
inline constexpr float pixel_deviation = 0.3530F;

/// Copies the samples `which` to a batch; rows beyond them are zeros with label 0.
inline void fill(host_batch& to, const tessera::io::labelled_images& from, std::span<const std::uint32_t> which) {
  const std::size_t width = to.images.size() / to.labels.size();
  for (std::size_t row = 0; row < which.size(); ++row) {
    const std::uint8_t* image = from.images.data.data() + which[row] * width;
    for (std::size_t i = 0; i < width; ++i)
      to.images[row * width + i] = (static_cast<float>(image[i]) / 255.0F - pixel_mean) / pixel_deviation;
    to.labels[row] = from.labels.data[which[row]];
  }
  std::fill(to.images.begin() + static_cast<std::ptrdiff_t>(which.size() * width), to.images.end(), 0.0F);
  std::fill(to.labels.begin() + static_cast<std::ptrdiff_t>(which.size()), to.labels.end(), 0);
}

/// Samples [first, last) of a set, shuffled by a key; without one in order.
inline std::vector<std::uint32_t> sample_order(std::size_t first, std::size_t last) {
  std::vector<std::uint32_t> order(last - first);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(first + i);
  return order;
}
inline std::vector<std::uint32_t> sample_order(std::size_t first, std::size_t last, tessera::random::key key) {
  std::vector<std::uint32_t> order = tessera::random::permutation(key, last - first);
  for (std::uint32_t& i : order) i += static_cast<std::uint32_t>(first);
  return order;
}

}  // namespace fashion
