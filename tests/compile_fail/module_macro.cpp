// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: the type does not name its members; write TESSERA_MODULE(type, members...)
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>

struct model {
  ts::nn::linear<64, 10> layer;
  CURE((), (TESSERA_MODULE(model, layer)))
};
auto made() { return ts::init<model, cluster>(ts::nn::rngs{.params = 0}); }
