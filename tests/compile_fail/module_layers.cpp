// SPDX-License-Identifier: Apache-2.0
// expect: tessera: layer: the last extent of the input is not in_features; make the layers chain
// note: linear<32, 64> of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

struct mlp {
  ts::nn::linear<64, 64> first, second;
  ts::nn::linear<CURE((32), (64)), 64> third;
  ts::nn::linear<64, 64> fourth;
  TESSERA_MODULE(mlp, first, second, third, fourth)

  constexpr auto operator()(auto x) { return fourth(ts::relu(third(ts::relu(second(ts::relu(first(x))))))); }
};
using model = ts::nn::bound<mlp, cluster>;
using optimizer = decltype(ts::nn::optimizer<ts::nn::param>(model{}, ts::optim::sgd(0.1)));

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};
using program = ts::lowered<step, model, optimizer, batch, batch>;
static_assert(CURE((program::collectives().all_gather == 0), (!program::traced::refused)));
