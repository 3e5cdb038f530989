// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: how many elements a member has is not known while compiling; use std::array or
//         std::tuple
#include "cure.hpp"
#include "trained.hpp"

#include <array>
#include <vector>

struct model {
  CURE((std::vector<layer>), (std::array<layer, 3>)) layers;
  TESSERA_MODULE(model, layers)
};
auto made() { return ts::init<model, cluster>(ts::nn::rngs{.params = 0}); }
