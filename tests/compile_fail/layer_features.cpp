// SPDX-License-Identifier: Apache-2.0
// expect: tessera: layer: the last extent of the input is not in_features; make the layers chain
// note: linear<32, 10> of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

using layer = ts::nn::bound<ts::nn::linear<CURE((32), (64)), 10>, cluster>;
inline constexpr auto step = [](auto& model, auto x) { return model(x); };
static_assert(ts::lowered<step, layer, batch>::collectives().all_gather == 0);
