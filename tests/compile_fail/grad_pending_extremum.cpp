// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: there is no gradient through a pending maximum or minimum; reduce without
//         unreduced
// note: float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto loss = [](auto x) {
  return ts::sum(ts::reshard<P<>>(ts::max<0>(x, ts::out_sharding<CURE((P<ts::unreduced_max<"data">>), (P<>))>)));
};
inline constexpr auto step = [](auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(x);
  return grads;
};
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
