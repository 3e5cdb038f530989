// SPDX-License-Identifier: Apache-2.0
// expect: tessera: optimizer: the model has no variables of this kind; write optimizer<param>(model, ...)
#include "cure.hpp"

#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>

namespace ts = tessera;

struct net {
  ts::nn::linear<8, 8> layer;
  TESSERA_MODULE(net, layer)
};

auto make(const ts::nn::bound<net, ts::mesh<>>& model) {
  return ts::nn::optimizer<CURE((ts::nn::batch_stat), (ts::nn::param))>(model, ts::optim::sgd(0.1));
}
