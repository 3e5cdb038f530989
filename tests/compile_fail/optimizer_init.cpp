// SPDX-License-Identifier: Apache-2.0
// expect: tessera: optimizer: the model is on no mesh; make it with init<type, mesh>(rngs)
#include "cure.hpp"
#include "trained.hpp"

auto made() {
  auto model = CURE((layer{}), ((ts::init<layer, cluster>(ts::nn::rngs{.params = 0}))));
  return ts::nn::optimizer<ts::nn::param>(model, ts::optim::sgd(0.1));
}
