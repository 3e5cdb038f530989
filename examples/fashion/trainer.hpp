// SPDX-License-Identifier: Apache-2.0
// What the program needs of a mesh: a training step and logits, behind ordinary functions. Each mesh has a file that
// makes them, the only one that pays for compiling its steps.
#pragma once

#include "batch.hpp"
#include "sizes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fashion {

/// What the user may set, and what was chosen on the last 5,000 training images (--holdout 5000).
struct settings {
  std::string mesh;
  std::int64_t epochs = 10;
  std::uint32_t seed = 0;
  int threads = 0;
  std::string out = "fashion-out";
  std::size_t holdout = 0;
  double peak_rate = 2e-3;
  double weight_decay = 1e-2;
};

class trainer {
 public:
  virtual ~trainer() = default;
  virtual double step(const host_batch& host) = 0;                ///< trains on a batch, returns its loss
  virtual std::vector<float> logits(const host_batch& host) = 0;  ///< a row an image
};

/// The name of the mesh this program is built for.
extern const char* const mesh_name;

/// A model with its optimiser; the learning rate rises for `warmup` steps and falls until step `total`.
std::unique_ptr<trainer> make_trainer(const settings& s, std::int64_t warmup, std::int64_t total);

}  // namespace fashion
