// SPDX-License-Identifier: Apache-2.0
// Named optimisers against reference values, and what their state costs.
#include "support.hpp"

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>

using namespace optim_test;

namespace {

template <class WeightShape, class BiasShape, class Spec = P<>>
struct layer {
  nn::variable<nn::param, f32, WeightShape, Spec> w;
  nn::variable<nn::param, f32, BiasShape> b;
  TESSERA_MODULE(layer, w, b)
};

using theta = layer<shape<8, 4>, shape<4>>;

numbers load(const std::string& file) {
  const auto array = reference::load_npy<float>(file);
  return numbers(array.begin(), array.end());
}

std::vector<numbers> parameters() { return {load("s6_9_theta_w.npy"), load("s6_9_theta_b.npy")}; }
std::vector<numbers> gradients() { return {load("s6_9_grad_w.npy"), load("s6_9_grad_b.npy")}; }

template <class Transformation>
nlohmann::json three_steps(Transformation t) {
  auto optimiser = start<theta>(std::move(t));
  std::vector<numbers> params = parameters();
  for (int i = 0; i < 3; ++i) optimiser.step(params, gradients());
  const numbers& w = params[0];
  return {{"w_row0", numbers(w.begin(), w.begin() + 4)},
          {"w_row7", numbers(w.begin() + 28, w.begin() + 32)},
          {"b", params[1]}};
}

float largest_difference(const std::vector<numbers>& a, const std::vector<numbers>& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) largest = std::max(largest, std::abs(a[i][j] - b[i][j]));
  return largest;
}

template <class Transformation>
std::vector<numbers> one_step(Transformation t, const std::vector<numbers>& grads) {
  std::vector<numbers> params = parameters();
  start<theta>(std::move(t)).step(params, grads);
  return params;
}

/// Bytes of state a byte of parameters.
template <class Model, class Transformation>
double state_ratio(Transformation t, std::int64_t parameter_count) {
  return static_cast<double>(start<Model>(std::move(t)).state_bytes()) / static_cast<double>(4 * parameter_count);
}

struct three_arrays {
  nn::variable<nn::param, f32, shape<4096, 512>> emb;
  nn::variable<nn::param, f32, shape<512, 2048>> w;
  nn::variable<nn::param, f32, shape<2048>> b;
  TESSERA_MODULE(three_arrays, emb, w, b)
};

}  // namespace

TEST_CASE("three steps of each optimiser have the reference values") {
  CHECK(reference::check("three_steps_constant_sgd+momentum", three_steps(optim::sgd(0.1, 0.9))));
  CHECK(reference::check("three_steps_constant_adam", three_steps(optim::adam(1e-2))));
  CHECK(reference::check("three_steps_constant_adamw", three_steps(optim::adamw(1e-2, 0.9, 0.999, 1e-8, 0.1))));
}

TEST_CASE("plain gradient descent is p - rate g") {
  std::vector<numbers> expected = parameters();
  const std::vector<numbers> g = gradients();
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t j = 0; j < expected[i].size(); ++j) expected[i][j] = expected[i][j] + g[i][j] * -0.1f;
  CHECK(one_step(optim::sgd(0.1), g) == expected);
}

TEST_CASE("one step of AdamW is its five-line formula") {
  std::vector<numbers> expected = parameters();
  const std::vector<numbers> g = gradients();
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      const double m = 0.1 * g[i][j] / (1 - 0.9);
      const double v = 0.001 * g[i][j] * g[i][j] / (1 - 0.999);
      const double direction = m / (std::sqrt(v) + 1e-8) + 0.1 * expected[i][j];
      expected[i][j] = static_cast<float>(expected[i][j] - 1e-2 * direction);
    }
  CHECK(reference::check("adamw_formula_vs_optimizer",
                         largest_difference(one_step(optim::adamw(1e-2, 0.9, 0.999, 1e-8, 0.1), g), expected)));
}

TEST_CASE("decay in the gradient is not decay in the weight") {
  std::vector<numbers> with_l2 = gradients();
  const std::vector<numbers> theta0 = parameters();
  for (std::size_t i = 0; i < with_l2.size(); ++i)
    for (std::size_t j = 0; j < with_l2[i].size(); ++j) with_l2[i][j] += 0.1f * theta0[i][j];
  CHECK(reference::check("adam_l2_vs_adamw",
                         largest_difference(one_step(optim::adam(1e-2), with_l2),
                                            one_step(optim::adamw(1e-2, 0.9, 0.999, 1e-8, 0.1), gradients()))));
}

TEST_CASE("a schedule sees steps from 0: nothing moves while the rate is 0, not even by decay") {
  const auto schedule = optim::warmup_cosine_decay_schedule(0, 1e-3, 1000, 100000, 1e-5);
  auto optimiser = start<layer<shape<4, 3>, shape<3>>>(optim::adamw(schedule, 0.9, 0.999, 1e-8, 0.01));
  const std::vector<numbers> at_first{numbers(12, 1), numbers(3, 0)};
  const std::vector<numbers> grads{numbers(12, 0.5f), numbers(3, -0.2f)};
  std::vector<numbers> params = at_first;
  optimiser.step(params, grads);
  CHECK(reference::check("adamw_step0_zero_lr", nlohmann::json{schedule(0), params == at_first}));
  optimiser.step(params, grads);
  CHECK(reference::check("adamw_step1_params", nlohmann::json{{"w", params[0][0]}, {"b", params[1][0]}}));
}

TEST_CASE("Adam with zero gradients moves nothing") {
  const std::vector<numbers> zeros{numbers(32, 0), numbers(4, 0)};
  CHECK(one_step(optim::adam(1e-3), zeros) == parameters());
}

TEST_CASE("state costs what the reference says, a byte of parameters") {
  constexpr std::int64_t count = 4096 * 512 + 512 * 2048 + 2048;
  CHECK(reference::check("state_ratio_sgd", state_ratio<three_arrays>(optim::sgd(0.1), count)));
  CHECK(reference::check("state_ratio_sgd+momentum", state_ratio<three_arrays>(optim::sgd(0.1, 0.9), count)));
  CHECK(reference::check("state_ratio_adamw", state_ratio<three_arrays>(optim::adamw(1e-3), count)));
  CHECK(reference::check("adam_state_ratio_toy",
                         state_ratio<layer<shape<1024, 512>, shape<512>>>(optim::adam(1e-3), 1024 * 512 + 512)));
}

TEST_CASE("state is cut as its parameter is") {
  using eight = mesh<axis<"data", 8>>;
  using cut =
      decltype(optim::scale_by_adam_t::state<layer<shape<1024, 256>, shape<256>, P<"data">>, nn::param>{}.mu.arrays.w);
  using whole = decltype(optim::scale_by_adam_t::state<layer<shape<1024, 256>, shape<256>>, nn::param>{}.mu.arrays.w);
  CHECK(reference::check(
      "replicated_and_sharded_mu_bytes",
      std::vector<std::int64_t>{local_block(transform::variable_type<whole, eight>, eight::value).bytes(),
                                local_block(transform::variable_type<cut, eight>, eight::value).bytes()}));
}
