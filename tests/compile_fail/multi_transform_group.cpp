// SPDX-License-Identifier: Apache-2.0
// expect: tessera: multi_transform: a variable is in no group; end with group(everything_else, ...)
#include "cure.hpp"

#include <tessera/nn/linear.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/masks.hpp>
#include <tessera/optim/optimizers.hpp>

namespace ts = tessera;

auto make(const ts::nn::bound<ts::nn::linear<8, 8>, ts::mesh<>>& model) {
  using namespace ts::optim;
  return ts::nn::optimizer<ts::nn::param>(
      model,
      multi_transform(group(named<"kernel">, adam(1e-3)), group(CURE((named<"scale">), (everything_else)), sgd(0.1))));
}
