// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: sums_in<...> is for parameters of a module that are reduced over a mesh axis, and
//         there are none; mark them reduced<...>
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/transform/value_and_grad.hpp>

using model =
    ts::nn::bound<ts::nn::linear<16, 4, ts::kernel<CURE((P<>), (P<ts::reduced<"data">>))>, ts::use_bias<false>>,
                  cluster>;
using batch = ts::tensor<ts::f32, ts::shape<8, 16>, P<"data">, cluster>;
inline constexpr auto loss = [](auto& m, auto x) { return ts::mean(ts::square(m(x))); };
inline constexpr auto step = [](auto& m, auto x) {
  auto [l, grads] = ts::value_and_grad(loss, ts::sums_in<ts::bf16>)(m, x);
  return l;
};
static_assert(ts::lowered<step, model, batch>::collectives().all_gather == 0);
