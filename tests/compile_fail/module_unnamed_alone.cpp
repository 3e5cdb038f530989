// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: a variable is not among the members that TESSERA_MODULE names; name it there
// note: float32[]
#include "cure.hpp"
#include "trained.hpp"

struct model {
  layer up;
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4>> scale;
  TESSERA_MODULE(model, CURE((up), (up, scale)))

  constexpr auto operator()(auto) { return ts::mean(ts::square(scale)); }
};
inline constexpr auto step = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad([](auto& m, auto v) { return m(v); })(model, x);
  return l;
};
static_assert(lowers<step, ts::nn::bound<model, cluster>, batch>());
