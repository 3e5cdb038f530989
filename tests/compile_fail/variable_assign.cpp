// SPDX-License-Identifier: Apache-2.0
// expect: tessera: variable: the new value has another dtype, shape or sharding; convert, reshape or reshard it first
// note: float32[64@model] = float32[64]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/module.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

struct center {
  ts::nn::variable<ts::nn::batch_stat, ts::f32, ts::shape<64>, P<"model">> mean;
  TESSERA_MODULE(center, mean)
};

inline constexpr auto step = [](auto& model, auto x) {
  model.mean = CURE((ts::mean<0>(x)), (ts::reshard<P<"model">>(ts::mean<0>(x))));
};
static_assert(ts::lowered<step, ts::nn::bound<center, cluster>, batch>::collectives().all_gather == 0);
