// SPDX-License-Identifier: Apache-2.0
// Host memory of one batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fashion {

struct host_batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  host_batch(std::size_t rows, std::size_t width) : images(rows * width), labels(rows) {}
};

}  // namespace fashion
