// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: an argument is no tensor, number, module made by init or optimizer; pass one of these
// note: argument 2 of the step
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

using layer = ts::nn::linear<64, 10>;
inline constexpr auto step = [](auto x, auto& model) { return model(x); };
static_assert(ts::lowered<step, batch, CURE((layer), (ts::nn::bound<layer, cluster>))>::collectives().all_gather == 0);
