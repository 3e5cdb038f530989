// SPDX-License-Identifier: Apache-2.0
// expect: tessera: optimizer: the gradients belong to another model; pass those of this model
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

using layer = ts::nn::bound<ts::nn::linear<64, 64>, cluster>;
using other = ts::nn::bound<ts::nn::linear<64, CURE((32), (64))>, cluster>;
using optimizer = decltype(ts::nn::optimizer<ts::nn::param>(layer{}, ts::optim::sgd(0.1)));

inline constexpr auto loss = [](auto& model, auto x) { return ts::mean(ts::square(model(x))); };
inline constexpr auto step = [](auto& student, auto& teacher, auto& optimizer, auto x) {
  auto grads = ts::grad(loss)(teacher, x);
  optimizer.update(student, grads);
};
static_assert(ts::lowered<step, layer, other, optimizer, batch>::collectives().all_gather == 0);
