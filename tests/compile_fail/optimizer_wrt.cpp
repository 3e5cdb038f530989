// SPDX-License-Identifier: Apache-2.0
// expect: tessera: optimizer: nothing says what it updates; write optimizer<param>(model, ...)
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/nn/linear.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>

auto made(const ts::nn::bound<ts::nn::linear<64, 10>, cluster>& model) {
  return ts::nn::optimizer CURE((), (<ts::nn::param>))(model, ts::optim::sgd(0.1));
}
