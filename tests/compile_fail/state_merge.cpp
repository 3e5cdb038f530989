// SPDX-License-Identifier: Apache-2.0
// expect: tessera: merge: none of the states has one of the variables; pass all that split gave
// note: mean
#include "cure.hpp"
#include "trained.hpp"

#include <tessera/nn/state.hpp>

struct model {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4>> scale;
  ts::nn::variable<ts::nn::batch_stat, ts::f32, ts::shape<4>> mean;
  TESSERA_MODULE(model, scale, mean)
};
namespace nn = ts::nn;
void run(const nn::bound<model, cluster>& m) {
  const auto [def, params, rest] = nn::split<nn::param, nn::everything_else>(m);
  static_cast<void>(rest);
  nn::merge(def, params CURE((), (, rest)));
}
