// SPDX-License-Identifier: Apache-2.0
// Named optimisers against reference values, and what their state costs.
#include "support.hpp"

#include <tessera/optim/factored.hpp>
#include <tessera/optim/gradient_scaling.hpp>
#include <tessera/optim/masks.hpp>

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
  CHECK(reference::check("three_steps_constant_adamw", three_steps(optim::adamw(1e-2, {.weight_decay = 0.1}))));
  CHECK(reference::check("three_steps_constant_adafactor", three_steps(optim::adafactor(1e-2))));
  CHECK(reference::check("three_steps_constant_lamb", three_steps(optim::lamb(1e-2, {.weight_decay = 0.01}))));
  CHECK(reference::check("three_steps_constant_lars", three_steps(optim::lars(0.5, {.weight_decay = 0.01}))));
  CHECK(reference::check("three_steps_constant_lion", three_steps(optim::lion(1e-2, {.weight_decay = 0.1}))));
  CHECK(reference::check("three_steps_constant_sm3", three_steps(optim::sm3(0.1))));
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
  CHECK(reference::check("state_ratio_adafactor", state_ratio<three_arrays>(optim::adafactor(1e-3), count)));
  CHECK(reference::check("state_ratio_lamb", state_ratio<three_arrays>(optim::lamb(1e-3), count)));
  CHECK(reference::check("state_ratio_lion", state_ratio<three_arrays>(optim::lion(1e-4), count)));
  CHECK(state_ratio<three_arrays>(optim::lars(1e-2), count) == Approx(1));
  CHECK(state_ratio<three_arrays>(optim::sm3(1e-2), count) == Approx(1.0029).margin(5e-5));
  CHECK(reference::check("adam_state_ratio_toy",
                         state_ratio<layer<shape<1024, 512>, shape<512>>>(optim::adam(1e-3), 1024 * 512 + 512)));
}

TEST_CASE("state is cut as its parameter is") {
  using eight = mesh<axis<"data", 8>>;
  using cut = decltype(
      optim::scale_by_adam_t<>::state<layer<shape<1024, 256>, shape<256>, P<"data">>, nn::param>{}.mu.arrays.w);
  using whole = decltype(optim::scale_by_adam_t<>::state<layer<shape<1024, 256>, shape<256>>, nn::param>{}.mu.arrays.w);
  const auto got = std::vector<std::int64_t>{local_block(transform::variable_type<whole, eight>, eight::value).bytes(),
                                             local_block(transform::variable_type<cut, eight>, eight::value).bytes()};
  CHECK(reference::check("replicated_and_sharded_mu_bytes", got));
}

namespace {

template <class State, class Mesh>
std::vector<std::vector<std::int64_t>> blocks_of(const State& state) {
  std::vector<std::vector<std::int64_t>> shapes;
  visit_variables(state, [&](const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    const aval block = local_block(transform::variable_type<V, Mesh>, Mesh::value);
    shapes.emplace_back();
    for (int d = 0; d < block.rank; ++d) shapes.back().push_back(block.dims[d].extent);
  });
  return shapes;
}

using shapes = std::vector<std::vector<std::int64_t>>;

struct matrix {
  nn::variable<nn::param, f32, shape<4096, 512>, P<"data", "model">> w;
  TESSERA_MODULE(matrix, w)
};

}  // namespace

TEST_CASE("Adafactor keeps a row and a column of a matrix, cut as the dimension is that they lie along") {
  using grid = mesh<axis<"data", 2>, axis<"model", 4>>;
  using state = decltype(optim::scale_by_factored_rms())::state<matrix, nn::param>;
  CHECK(reference::check("adafactor_state_shapes",
                         shapes{blocks_of<state, mesh<axis<"data", 1>, axis<"model", 1>>>({}).at(1),
                                blocks_of<state, mesh<axis<"data", 1>, axis<"model", 1>>>({}).at(2)}));
  CHECK(blocks_of<state, grid>({}) == shapes{{}, {128}, {2048}});
  using axes = optim::scale_by_sm3_t::state<matrix, nn::param>;
  CHECK(blocks_of<axes, grid>({}) == shapes{{2048}, {128}, {2048, 128}});
}

namespace {

template <class WeightSpec, class BiasSpec>
struct wide_layer {
  nn::variable<nn::param, f32, shape<8, 6>, WeightSpec> w;
  nn::variable<nn::param, f32, shape<6>, BiasSpec> b;
  TESSERA_MODULE(wide_layer, w, b)
};

template <class Ws, class Bs, class Mesh, class Transformation>
std::vector<numbers> two_steps(Transformation t) {
  auto optimiser = start<wide_layer<Ws, Bs>, Mesh>(std::move(t));
  std::vector<numbers> params{numbers(48), numbers(6)};
  std::vector<numbers> g = params;
  for (std::size_t i = 0; i < 48; ++i) {
    params[0][i] = static_cast<float>(std::cos(static_cast<double>(i)));
    g[0][i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
    params[1][i % 6] = 0.5f, g[1][i % 6] = static_cast<float>(i % 6) - 2;
  }
  for (int i = 0; i < 2; ++i) optimiser.step(params, g);
  return params;
}

}  // namespace

TEST_CASE("factored Adafactor is its formula, and with SM3 and LAMB the same on every mesh") {
  using grid = mesh<axis<"data", 2>, axis<"model", 2>>;
  const auto factored = optim::scale_by_factored_rms<4>();
  std::vector<numbers> params = two_steps<P<>, P<>, mesh<>>(factored);
  double row[6] = {}, column[8] = {}, w[48];
  for (int i = 0; i < 48; ++i) w[i] = static_cast<double>(static_cast<float>(std::cos(i)));
  for (int t = 1; t <= 2; ++t) {
    const double rest = std::pow(t, -0.8);
    double mean = 0;
    const auto g = [](int i, int j) { return std::sin(1.3 * (6 * i + j)); };
    for (int j = 0; j < 6; ++j) {
      double squares = 0;
      for (int i = 0; i < 8; ++i) squares += g(i, j) * g(i, j) / 8;
      row[j] = (1 - rest) * row[j] + rest * squares, mean += row[j] / 6;
    }
    for (int i = 0; i < 8; ++i) {
      double squares = 0;
      for (int j = 0; j < 6; ++j) squares += g(i, j) * g(i, j) / 6;
      column[i] = (1 - rest) * column[i] + rest * squares;
      for (int j = 0; j < 6; ++j) w[6 * i + j] += g(i, j) / std::sqrt(row[j] / mean * column[i]);
    }
  }
  for (std::size_t i = 0; i < 48; ++i) CHECK(params[0][i] == Approx(w[i]).epsilon(1e-4).margin(1e-5));

  const auto everywhere = [&](auto t) {
    const auto alone = two_steps<P<>, P<>, mesh<>>(t);
    const auto compare = [&](const std::vector<numbers>& other) {
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < alone[i].size(); ++j)
          CHECK(other[i][j] == Approx(alone[i][j]).epsilon(1e-5).margin(1e-6));
    };
    compare(two_steps<P<"data", "model">, P<"model">, grid>(t));
  };
  everywhere(factored);
  everywhere(optim::sm3(0.1));
  everywhere(optim::lamb(0.1));
}

TEST_CASE("LAMB's trust ratios are those of the reference, array by array") {
  // Adam's constants as the reference rounds them; a rate of 1 and no decay in the chain leave the ratio of lengths.
  const std::vector<numbers> theta0 = parameters();
  const std::vector<numbers> g = gradients();
  nlohmann::json ratios;
  const char* names[] = {"w", "b"};
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<numbers> direction{numbers(32, 0), numbers(4, 0)};
    for (std::size_t j = 0; j < g[i].size(); ++j) {
      const float m = 0.1f * g[i][j] / 0.1f;
      const float v = 0.001f * (g[i][j] * g[i][j]) / 0.001f;
      direction[i][j] = m / (std::sqrt(v) + 1e-6f) + 0.01f * theta0[i][j];
    }
    std::vector<numbers> params = theta0;
    const auto scaled = start<theta>(optim::scale_by_trust_ratio()).step(params, direction);
    ratios[names[i]] = static_cast<double>(scaled[i][0]) / static_cast<double>(direction[i][0]);
  }
  CHECK(reference::check("lamb_trust_ratios", ratios));
}

namespace {

struct dense_layer {
  nn::variable<nn::param, f32, shape<3, 3>> kernel;
  nn::variable<nn::param, f32, shape<3>> bias;
  TESSERA_MODULE(dense_layer, kernel, bias)
};
struct normalised {
  nn::variable<nn::param, f32, shape<3>> scale, bias;
  TESSERA_MODULE(normalised, scale, bias)
};
struct network {
  dense_layer dense;
  normalised ln;
  TESSERA_MODULE(network, dense, ln)
};

}  // namespace

TEST_CASE("decay is masked by name") {
  auto optimiser = start<network>(optim::adamw(0.1, {.weight_decay = 0.5}, optim::named<"kernel">));
  std::vector<numbers> params{numbers(9, 1), numbers(3, 1), numbers(3, 1), numbers(3, 1)};
  const auto u = optimiser.step(params, {numbers(9, 0), numbers(3, 0), numbers(3, 0), numbers(3, 0)});
  const auto got =
      nlohmann::json{{"dense.kernel", u[0][0]}, {"dense.bias", u[1][0]}, {"ln.scale", u[2][0]}, {"ln.bias", u[3][0]}};
  CHECK(reference::check("masked_decay_updates", got));
}
