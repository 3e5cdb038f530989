// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: the loss is not a scalar; reduce it with mean or sum
// note: loss is float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto loss = [](auto x) { return CURE((ts::square(x)), (ts::mean(ts::square(x)))); };
inline constexpr auto step = [](auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(x);
  return grads;
};
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
