// SPDX-License-Identifier: Apache-2.0
// expect: tessera: optimizer: gradients stand where the model goes; write update(model, gradients)
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto& model, auto& optimizer, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x);
  optimizer.update(CURE((grads, model), (model, grads)));
  return l;
};
static_assert(lowers<step, model_type, optimizer_type, batch>());
