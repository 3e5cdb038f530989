// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: a result is no traced value; return arrays, or a tuple of them
// note: gradients
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x);
  return CURE((grads), (ts::reshard<P<>>(grads.bias)));
};
static_assert(lowers<step, model_type, batch>());
