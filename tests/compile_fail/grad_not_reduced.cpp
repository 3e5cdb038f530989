// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: the loss is unreduced or reduced; write reshard<P<>>(loss)
// note: loss is float32[]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto loss = [](auto x) {
  auto total = ts::sum(ts::square(x), ts::out_sharding<P<ts::unreduced<"data">>>);
  return CURE((total), (ts::reshard<P<>>(total)));
};
inline constexpr auto step = [](auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(x);
  return grads;
};
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
