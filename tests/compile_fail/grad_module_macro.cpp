// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: the type does not name its members; write TESSERA_MODULE(type, members...)
#include "cure.hpp"
#include "trained.hpp"

struct model {
  layer up;
  CURE((), (TESSERA_MODULE(model, up)))
  constexpr auto operator()(auto x) { return up(x); }
};
inline constexpr auto step = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x);
  return l;
};
static_assert(lowers<step, ts::nn::bound<model, cluster>, batch>());
