// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: the function returns more than a loss; write value_and_grad(f, has_aux)
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto both = [](auto& model, auto x) {
  auto y = model(x);
  return std::pair(ts::mean(y), y);
};
inline constexpr auto step = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad(CURE((both), (both, ts::has_aux)))(model, x);
  return l;
};
static_assert(lowers<step, model_type, batch>());
