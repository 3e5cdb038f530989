// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: a member is named twice; name it once
// note: member up
#include "cure.hpp"
#include "trained.hpp"

struct model {
  layer up, down;
  TESSERA_MODULE(model, up, CURE((up), (down)))
};
auto made() { return ts::init<model, cluster>(ts::nn::rngs{.params = 0}); }
