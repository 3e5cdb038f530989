// SPDX-License-Identifier: Apache-2.0
// A race of optimisers: one network, one batch, one beginning, 500 steps each.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace race {

/// The problem in numbers: a network 16-128-128-128-1 with tanh-approximated GELU, its four kernels at first (biases
/// are 0), and one batch.
struct problem {
  static constexpr int rows = 1024, features = 16, width = 128, layers = 4;
  std::vector<float> x, y;
  std::vector<float> kernels[layers];
};

/// Points drawn by ourselves: x uniform in [-2, 2), y = sin(x0 x1) + cos(x2) / 2, kernels normal with variance 2 /
/// inputs.
problem drawn(unsigned seed);

struct outcome {
  std::vector<double> losses;  ///< before each step
  double state_bytes = 0;      ///< a byte of parameters
  double seconds = 0;
};

struct contender {
  std::string name;
  std::function<outcome(const problem&, int steps)> run;
};

/// SGD with momentum, AdamW, Adafactor, LAMB, LARS and Lion, with schedules that rise for 50 steps and fall until step
/// `steps`.
std::vector<contender> contenders();

}  // namespace race
