// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: has_aux needs a pair; return std::pair(loss, aux)
// note: result is float32[]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto loss = [](auto x) {
  auto l = ts::mean(x);
  return CURE((l), (std::pair(l, x)));
};
inline constexpr auto step = [](auto x) {
  auto [value, grads] = ts::value_and_grad(loss, ts::has_aux)(x);
  return value.first;
};
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
