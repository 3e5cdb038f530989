// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: an operand of a product is reduced over axes that its gradient is no sum over; cut
//         the other operand by them or drop reduced<...>
// note: float32[8,16] and float32[16,4]{R:data}
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<8, 16>, CURE((P<>), (P<"data">)), cluster>;
using weight = ts::tensor<ts::f32, ts::shape<16, 4>, P<ts::reduced<"data">>, cluster>;

inline constexpr auto loss = [](auto w, auto x) { return ts::mean(ts::square(ts::matmul(x, w))); };
inline constexpr auto step = [](auto w, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(w, x);
  return grads;
};
static_assert(ts::lowered<step, weight, batch>::collectives().all_gather == 0);
