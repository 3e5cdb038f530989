// SPDX-License-Identifier: Apache-2.0
// expect: tessera: sequential: two layers do not chain; make in_features the out_features of the layer before
// note: linear<64, 32>, then linear<16, 10> of float32[8@data,32]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/containers.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>

using batch = ts::tensor<ts::f32, ts::shape<8, 64>, P<"data">, cluster>;

using layers = ts::nn::sequential<ts::nn::linear<64, 32>, ts::nn::fn<ts::relu>, ts::nn::linear<CURE((16), (32)), 10>>;
inline constexpr auto step = [](auto& model, auto x) { return model(x); };
static_assert(ts::lowered<step, ts::nn::bound<layers, cluster>, batch>::collectives().all_gather == 0);
