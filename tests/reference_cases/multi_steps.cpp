// SPDX-License-Identifier: Apache-2.0
// Section 6.5: accumulation as a part of the optimiser, four micro-batches to an update.
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/wrappers.hpp>

#include <catch2/catch.hpp>

#include "optim/running.hpp"
#include "support.hpp"

namespace {

using namespace cases;

struct mlp {
  ts::nn::linear<16, 32> first;
  ts::nn::linear<32, 1> second;
  TESSERA_MODULE(mlp, first, second)

  constexpr auto operator()(auto x) { return second(ts::tanh(first(x))); }
};

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto train = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

auto loaded_model() {
  auto model = ts::init<mlp>(ts::nn::rngs{0});
  load(model.first.kernel, "s6_5_w1.npy");
  load(model.second.kernel, "s6_5_w2.npy");
  return model;
}

/// A step on batches of Rows rows; the last two inputs are the batch.
template <std::int64_t Rows, class Transformation>
optim_test::running prepared(Transformation t) {
  auto model = loaded_model();
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, std::move(t));
  using x = ts::tensor<ts::f32, ts::shape<Rows, 16>>;
  using y = ts::tensor<ts::f32, ts::shape<Rows, 1>>;
  optim_test::running made{ts::transform::traced<train, decltype(model), decltype(optimizer), x, y>::run()};
  made.add(model), made.add(optimizer);
  made.inputs.resize(made.inputs.size() + 2);
  return made;
}

void feed(optim_test::running& step, std::size_t first_row, std::size_t rows) {
  const auto part = [&](const std::string& file, std::size_t columns) {
    const auto host = reference::load_npy<float>(file);
    const float* from = host.data() + first_row * columns;
    return optim_test::bytes_of(optim_test::numbers(from, from + rows * columns));
  };
  step.inputs[step.inputs.size() - 2] = part("s6_5_x.npy", 16);
  step.inputs[step.inputs.size() - 1] = part("s6_5_y.npy", 1);
}

/// The parameters, which are the first inputs.
std::vector<double> parameters(const optim_test::running& step) {
  std::vector<double> all;
  for (std::size_t i = 0; i < 4; ++i)
    for (const float x : optim_test::numbers_of(step.inputs[i])) all.push_back(static_cast<double>(x));
  return all;
}

std::int32_t count(const std::vector<std::byte>& bytes) {
  std::int32_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("four calls of multi_steps are one update with the gradient of the whole batch") {
  optim_test::running step = prepared<16>(ts::optim::multi_steps(ts::optim::adam(1e-2), 4));
  // Parameters, seven hyperparameters, then the state: mini_step, gradient_step, ...
  constexpr std::size_t state = 4 + 7;
  reference::json trace;
  for (std::size_t micro = 0; micro < 4; ++micro) {
    const std::vector<double> before = parameters(step);
    feed(step, 16 * micro, 16);
    step.step();
    trace.push_back(
        {largest_difference(parameters(step), before), count(step.inputs[state]), count(step.inputs[state + 1])});
  }
  CHECK(reference::check("multisteps_trace", trace));

  optim_test::running big = prepared<64>(ts::optim::adam(1e-2));
  feed(big, 0, 64);
  big.step();
  CHECK(reference::check("multisteps_vs_big_adam", largest_difference(parameters(step), parameters(big))));

  double gathered = 0, parameter_bytes = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    parameter_bytes += static_cast<double>(step.inputs[i].size());
    gathered += static_cast<double>(step.inputs[state + 2 + i].size());
  }
  CHECK(reference::check("multisteps_buffer_ratio", gathered / parameter_bytes));
}
