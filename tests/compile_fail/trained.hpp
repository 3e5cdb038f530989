// SPDX-License-Identifier: Apache-2.0
// A small model, its optimizer, a batch and a loss, for mistakes in steps.
#pragma once

#include "arrays.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/transform/value_and_grad.hpp>

using layer = ts::nn::linear<8, 4>;
using model_type = ts::nn::bound<layer, cluster>;
using optimizer_type = decltype(ts::nn::optimizer<ts::nn::param>(model_type{}, ts::optim::sgd(0.1)));
using batch = ts::tensor<ts::f32, ts::shape<4, 8>, P<"data">, cluster>;

inline constexpr auto loss = [](auto& model, auto x) { return ts::mean(ts::square(model(x))); };

/// Asks for figures of a step of these arguments.
template <const auto& Step, class... Args>
constexpr bool lowers() {
  return ts::lowered<Step, Args...>::collectives().all_gather == 0;
}
