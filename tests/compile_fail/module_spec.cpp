// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: an extent is not divisible by the devices along its axes; use the nearest extent
//         or another axis
// note: variable float32[64,250], dimension 1 of extent 250, axis model of size 4, 4 devices, nearest extent 248
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

using layer = ts::nn::linear<64, CURE((250), (256)), ts::kernel<P<none, "model">>>;
auto made() { return ts::init<layer, cluster>(ts::nn::rngs{.params = 0}); }

inline constexpr auto step = [](auto& model, auto x) { return ts::mean(model(x)); };
static_assert(ts::lowered<step, ts::nn::bound<layer, cluster>, batch>::collectives().all_gather == 0);
