// SPDX-License-Identifier: Apache-2.0
// expect: tessera: optimizer: what is updated is const; take it as auto& and pass one that is not const
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto& model, auto& optimizer, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x);
  optimizer.update(model, grads);
  return l;
};
static_assert(lowers<step, model_type, CURE((const optimizer_type), (optimizer_type)), batch>());
