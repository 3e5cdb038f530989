// SPDX-License-Identifier: Apache-2.0
// Layers whose call changes the module: batch_norm and dropout.
#include "nn/layer_cases.hpp"

using namespace layer_cases;

namespace {

using f64 = ts::param_dtype<ts::f64>;

/// (loss, gradients of the parameters, gradient of x where it is a parameter, result) and the state that is left.
inline constexpr auto trained = [](auto& model, auto weights, auto x) {
  const auto loss = [&](auto& m, auto w) {
    const auto y = m(x);
    return std::pair(ts::sum(y * w), y);
  };
  auto [value, grads] = ts::value_and_grad(loss, ts::has_aux)(model, weights);
  return std::tuple_cat(std::tuple(value.first), parameters(grads), std::tuple(value.second));
};
inline constexpr auto evaluated = [](auto& model, auto x) {
  ts::nn::eval(model);
  return model(x);
};

/// Results of a step, and the arrays of the module after it (those it does not change as they were).
struct outcome {
  std::vector<numbers> results{}, module{};
};
template <class Model>
outcome run_on(const ts::graph::graph& g, const std::vector<numbers>& inputs) {
  outcome o;
  const auto out = run(g, inputs);
  o.module = inputs;
  int variables = 0;
  const Model model{};
  ts::visit_variables(model, [&](const auto&) { ++variables; });
  o.module.resize(static_cast<std::size_t>(variables));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (g.outputs[i].alias >= 0) o.module[static_cast<std::size_t>(g.outputs[i].alias)] = out[i];
    else o.results.push_back(out[i]);
  }
  return o;
}

using batch_norm = ts::nn::batch_norm<3, f64, ts::momentum<0.9>>;
using x_type = array<ts::shape<2, 4, 3>>;

/// x as a parameter of a module, so that its gradient is there too.
template <class Norm, class Spec = P<>>
struct of_parameter {
  Norm norm;
  ts::nn::variable<ts::nn::param, ts::f64, ts::shape<2, 4, 3>, Spec> x;
  TESSERA_MODULE(of_parameter, norm, x)

  constexpr auto operator()(auto) { return norm(ts::reshard<Spec>(x)); }
};

}  // namespace

TEST_CASE("batch_norm: the batch has mean 0 and variance 1, running statistics move towards its own") {
  using model = of_parameter<batch_norm>;
  const auto g = trace<trained, model, x_type, x_type>();
  auto inputs = draw_inputs(g);
  inputs[2] = {1, 2, 3}, inputs[3] = {4, 5, 6};
  const outcome o = run_on<model>(g, inputs);
  for (std::size_t f = 0; f < 3; ++f) {
    double mean = 0, square = 0;
    for (std::size_t i = f; i < 24; i += 3) mean += inputs[4][i] / 8, square += inputs[4][i] * inputs[4][i] / 8;
    const double variance = square - mean * mean;
    for (std::size_t i = f; i < 24; i += 3) {
      const double y = (inputs[4][i] - mean) / std::sqrt(variance + 1e-5) * inputs[0][f] + inputs[1][f];
      CHECK(o.results.back()[i] == Approx(y).epsilon(1e-12).margin(1e-12));
    }
    CHECK(o.module[2][f] == Approx(0.9 * inputs[2][f] + 0.1 * mean).epsilon(1e-12));
    CHECK(o.module[3][f] == Approx(0.9 * inputs[3][f] + 0.1 * variance).epsilon(1e-12));
  }
  runtime_test::question q{g, {g.parameters[0], g.parameters[1], g.parameters[4]}, inputs};
  const auto outputs = q.g.outputs;
  q.g.outputs.resize(0);
  for (std::size_t i = 0; i < outputs.size() && q.g.outputs.size() < 4; ++i)
    if (outputs[i].alias < 0) q.g.outputs.push_back(outputs[i]);
  runtime_test::check_gradients(q);
}

TEST_CASE("batch_norm of a batch that is cut has the statistics of all of it, by one all-reduce") {
  using model = of_parameter<batch_norm>;
  using cut_model = of_parameter<batch_norm, P<"data">>;
  using cut_x = array<ts::shape<2, 4, 3>, ts::f64, P<"data">, cluster>;
  const auto whole = trace<trained, model, x_type, x_type>();
  const auto inputs = draw_inputs(whole);
  const outcome expected = run_on<model>(whole, inputs);
  const outcome found = run_on<cut_model>(trace<trained, cut_model, cut_x, cut_x>(), inputs);
  check_close(found.results, expected.results, 1e-13);
  check_close(found.module, expected.module, 1e-13);
  static constexpr auto forward = [](auto& m, auto x) { return m(x); };
  using program = ts::lowered<forward, ts::nn::bound<batch_norm, cluster>, cut_x>;
  STATIC_REQUIRE(program::collectives().all_reduce == 1);
}

TEST_CASE("batch_norm that evaluates uses its running statistics and leaves them") {
  const auto g = trace<evaluated, batch_norm, x_type>();
  auto inputs = draw_inputs(g);
  inputs[3] = {4, 5, 6};
  const outcome o = run_on<batch_norm>(g, inputs);
  for (std::size_t i = 0; i < 24; ++i) {
    const std::size_t f = i % 3;
    const double y = (inputs[4][i] - inputs[2][f]) / std::sqrt(inputs[3][f] + 1e-5) * inputs[0][f] + inputs[1][f];
    CHECK(o.results[0][i] == Approx(y).epsilon(1e-12));
  }
  CHECK(o.module[2] == inputs[2]);
  CHECK(o.module[3] == inputs[3]);
}

TEST_CASE("empty-batch: running statistics stay as they are") {
  using none_of_them = array<ts::shape<0, 3>>;
  static constexpr auto forward = [](auto& m, auto x) { return m(x); };
  const auto g = trace<forward, batch_norm, none_of_them>();
  const auto inputs = draw_inputs(g);
  const outcome o = run_on<batch_norm>(g, inputs);
  CHECK(o.results[0].empty());
  CHECK(o.module[2] == inputs[2]);
  CHECK(o.module[3] == inputs[3]);
}

namespace {

template <double Rate, class Spec = P<>, class... Options>
struct dropped {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4, 6>, Spec> w;
  ts::nn::dropout<Rate, Options...> drop;
  TESSERA_MODULE(dropped, w, drop)

  constexpr auto operator()(auto x) { return drop(ts::reshard<Spec>(w) * x); }
};
using matrix = array<ts::shape<4, 6>, ts::f32>;

/// The arrays of `dropped` and the weights and x of a step: key words 5 and 6, count 2, everything else told.
std::vector<numbers> dropped_inputs(double w, double x) {
  return {numbers(24, w), {5, 6}, {2}, numbers(24, 1), numbers(24, x)};
}

/// Whether JAX's bernoulli keeps each element, with the key of the stream's next call.
numbers kept(double p, std::size_t count) {
  const ts::random::key drawn = ts::random::fold_in({5, 6}, 2);
  numbers all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(ts::random::bernoulli_distribution(p)(drawn, i) ? 1 : 0);
  return all;
}

}  // namespace

TEST_CASE("dropout keeps what the stream's next key says, scaled, and counts the call") {
  using model = dropped<0.25>;
  const outcome o = run_on<model>(trace<trained, model, matrix, matrix>(), dropped_inputs(3, 1));
  const numbers mask = kept(0.75, 24);
  for (std::size_t i = 0; i < 24; ++i) {
    CHECK(o.results.back()[i] == mask[i] * 4);
    CHECK(o.results[1][i] == (mask[i] != 0 ? static_cast<double>(1 / 0.75F) : 0));
  }
  CHECK(o.module[2] == numbers{3});
}

TEST_CASE("dropout draws the same on a mesh, and shares a draw along broadcast dimensions") {
  using model = dropped<0.25, P<"data", "model">>;
  using cut = array<ts::shape<4, 6>, ts::f32, P<"data", "model">, cluster>;
  const outcome o = run_on<model>(trace<trained, model, cut, cut>(), dropped_inputs(3, 1));
  const numbers mask = kept(0.75, 24);
  for (std::size_t i = 0; i < 24; ++i) CHECK(o.results.back()[i] == mask[i] * 4);
  using rows = dropped<0.5, P<>, ts::broadcast_dims<-1>>;
  const outcome shared = run_on<rows>(trace<trained, rows, matrix, matrix>(), dropped_inputs(3, 1));
  const numbers row_mask = kept(0.5, 4);
  for (std::size_t i = 0; i < 24; ++i) CHECK(shared.results.back()[i] == row_mask[i / 6] * 6);
}

TEST_CASE("dropout-rate-one: zeros with zero gradients; a rate of 0 and evaluation are the identity, bit for bit") {
  using everything = dropped<1.0>;
  const outcome gone = run_on<everything>(trace<trained, everything, matrix, matrix>(), dropped_inputs(3, 1e30));
  CHECK(gone.results.back() == numbers(24));
  CHECK(gone.results[1] == numbers(24));
  using nothing = dropped<0.0>;
  const double third = static_cast<double>(1.0F / 3);
  const outcome same = run_on<nothing>(trace<trained, nothing, matrix, matrix>(), dropped_inputs(third, 1));
  CHECK(same.results.back() == numbers(24, third));
  CHECK(same.module[2] == numbers{2});
  using half = dropped<0.5>;
  auto inputs = dropped_inputs(third, 1);
  inputs.erase(inputs.begin() + 3);
  const outcome evaluates = run_on<half>(trace<evaluated, half, matrix>(), inputs);
  CHECK(evaluates.results[0] == numbers(24, third));
  CHECK(evaluates.module[2] == numbers{2});
}

TEST_CASE("remat-with-dropout-redraws-mask: values and gradients are the same bits with and without a checkpoint") {
  using model = dropped<0.5>;
  static constexpr auto checkpointed = [](auto& m, auto weights, auto x) {
    const auto loss = [&](auto& inner, auto w) {
      const auto y = ts::checkpoint([&](auto in) { return inner(in); })(x);
      return std::pair(ts::sum(ts::square(y) * w), y);
    };
    auto [value, grads] = ts::value_and_grad(loss, ts::has_aux)(m, weights);
    return std::tuple_cat(std::tuple(value.first), parameters(grads), std::tuple(value.second));
  };
  static constexpr auto plain = [](auto& m, auto weights, auto x) {
    const auto loss = [&](auto& inner, auto w) {
      const auto y = inner(x);
      return std::pair(ts::sum(ts::square(y) * w), y);
    };
    auto [value, grads] = ts::value_and_grad(loss, ts::has_aux)(m, weights);
    return std::tuple_cat(std::tuple(value.first), parameters(grads), std::tuple(value.second));
  };
  const outcome with = run_on<model>(trace<checkpointed, model, matrix, matrix>(), dropped_inputs(3, 0.7));
  const outcome without = run_on<model>(trace<plain, model, matrix, matrix>(), dropped_inputs(3, 0.7));
  CHECK(with.results == without.results);
  CHECK(with.module == without.module);
}
