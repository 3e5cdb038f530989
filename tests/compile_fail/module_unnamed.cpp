// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: a variable is not among the members that TESSERA_MODULE names; name it there
// note: float32[4]
#include "cure.hpp"
#include "trained.hpp"

struct model {
  layer up;
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4>> scale;
  TESSERA_MODULE(model, CURE((up), (up, scale)))

  constexpr auto operator()(auto x) { return up(x) * scale; }
};
inline constexpr auto step = [](auto& model, auto x) { return model(x); };
static_assert(lowers<step, ts::nn::bound<model, cluster>, batch>());
