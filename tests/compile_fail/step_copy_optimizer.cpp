// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: the step changes a copy of its argument; take modules and optimizers by reference,
//         auto& model
// note: argument 2 of the step
#include "cure.hpp"
#include "trained.hpp"

using adam = decltype(ts::nn::optimizer<ts::nn::param>(model_type{}, ts::optim::adam(0.1)));
inline constexpr auto step = [](auto& model, auto CURE((), (&)) optimizer, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x);
  optimizer.update(model, grads);
  return l;
};
static_assert(lowers<step, model_type, adam, batch>());
