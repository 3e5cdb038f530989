// SPDX-License-Identifier: Apache-2.0
// expect: tessera: split: no filter takes one of the variables; add everything_else
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
void run(const nn::bound<model, cluster>& m) { nn::split<nn::param CURE((), (, nn::everything_else))>(m); }
