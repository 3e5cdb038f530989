// SPDX-License-Identifier: Apache-2.0
// The steps that optimisers chain: clipping by the true norm on any mesh, and hyperparameters that are refused.
#include "support.hpp"

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

#include <cmath>
#include <limits>

using namespace optim_test;

namespace {

/// A weight and a bias, cut as the specs say.
template <class WeightSpec, class BiasSpec, class WeightShape, class BiasShape>
struct layer {
  nn::variable<nn::param, f32, WeightShape, WeightSpec> w;
  nn::variable<nn::param, f32, BiasShape, BiasSpec> b;
  TESSERA_MODULE(layer, w, b)
};

using reference_layer = layer<P<>, P<>, shape<2, 3>, shape<3>>;

template <class Model, class Mesh = mesh<>>
std::vector<numbers> clipped(double max_norm, const std::vector<numbers>& gradients) {
  std::vector<numbers> params = gradients;
  return start<Model, Mesh>(optim::clip_by_global_norm(max_norm)).step(params, gradients);
}

/// The global norm within a step.
template <class Model, class Mesh>
float norm_of(const std::vector<numbers>& gradients) {
  graph::graph g;
  g.mesh = Mesh::value;
  Model grads{};
  bind_variables<Mesh>(g, grads);
  g.outputs = {{optim::global_norm(optim::values_of(grads)).id, -1}};
  std::vector<std::vector<std::byte>> inputs;
  for (const numbers& x : gradients) inputs.push_back(bytes_of(x));
  return numbers_of(runtime::evaluate(g, inputs)[0])[0];
}

}  // namespace

TEST_CASE("the global norm has the reference value") {
  CHECK(
      reference::check("global_norm_before_clip", norm_of<reference_layer, mesh<>>({numbers(6, 10), numbers(3, -5)})));
}

TEST_CASE("three steps of clipping and AdamW have the reference values") {
  auto optimiser =
      start<reference_layer>(optim::chain(optim::clip_by_global_norm(1.0), optim::adamw(1e-3, 0.9, 0.999, 1e-8, 1e-4)));
  std::vector<numbers> params{{0, 1, 2, 3, 4, 5}, {1, 1, 1}};
  for (float scale : {1.0f, 0.01f, 1.0f}) optimiser.step(params, {numbers(6, 10 * scale), numbers(3, -5 * scale)});
  const numbers& w = params[0];
  const nlohmann::json got{{"w", {{w[0], w[1], w[2]}, {w[3], w[4], w[5]}}}, {"b", params[1]}};
  CHECK(reference::check("clip_then_adamw_three_steps", got));
}

TEST_CASE("gradients below the limit, or at it, pass bit for bit; above it they are scaled to it") {
  using pair = layer<P<>, P<>, shape<2>, shape<1>>;
  const std::vector<numbers> gradients{{3, 4}, {0}};
  CHECK(clipped<pair>(6, gradients) == gradients);
  CHECK(clipped<pair>(5, gradients) == gradients);
  const auto half = clipped<pair>(2.5, gradients);
  CHECK(half[0] == numbers{1.5, 2});
  CHECK(clipped<pair>(1, {{0, 0}, {0}}) == std::vector<numbers>{{0, 0}, {0}});
}

TEST_CASE("a limit of 0 gives zeros, also where the gradients are zeros") {
  using pair = layer<P<>, P<>, shape<2>, shape<1>>;
  CHECK(clipped<pair>(0, {{0, 0}, {0}}) == std::vector<numbers>{{0, 0}, {0}});
  CHECK(clipped<pair>(0, {{3, 4}, {12}}) == std::vector<numbers>{{0, 0}, {0}});
}

TEST_CASE("gradients whose squares overflow have their norm and are scaled by it, cut or not") {
  const std::vector<numbers> gradients{{1e20f, 1e20f}, {0}};
  const auto check = [&]<class Spec, class Mesh>(Spec, Mesh) {
    using pair = layer<Spec, P<>, shape<2>, shape<1>>;
    CHECK(norm_of<pair, Mesh>(gradients) == Approx(1.41421356e20).epsilon(1e-6));
    const auto out = clipped<pair, Mesh>(1, gradients);
    CHECK(out[0][0] == Approx(0.70710678).epsilon(1e-6));
    CHECK(out[0][1] == Approx(0.70710678).epsilon(1e-6));
    CHECK(out[1][0] == 0);
  };
  check(P<>{}, mesh<>{});
  check(P<"x">{}, mesh<axis<"x", 2>>{});
}

TEST_CASE("a gradient that is not finite has a norm that is not, and no other one becomes NaN") {
  using pair = layer<P<>, P<>, shape<2>, shape<1>>;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<numbers> gradients{{infinity, 1}, {2}};
  CHECK(norm_of<pair, mesh<>>(gradients) == infinity);
  CHECK(clipped<pair>(1, gradients) == gradients);
  const numbers nan{std::numeric_limits<float>::quiet_NaN(), 1};
  CHECK(std::isnan(norm_of<pair, mesh<>>({nan, {2}})));
  CHECK(clipped<pair>(1, {nan, {2}})[1] == numbers{2});
}

TEST_CASE("clip, clip_by_block_rms and adaptive_grad_clip bound elements, arrays and units") {
  using pair = layer<P<>, P<>, shape<2, 2>, shape<2>>;
  const std::vector<numbers> gradients{{3, -4, 0.5f, 0}, {1, -1}};
  std::vector<numbers> params{{1, 1, 1, 1}, {0, 0}};
  CHECK(start<pair>(optim::clip(1)).step(params, gradients) == std::vector<numbers>{{1, -1, 0.5f, 0}, {1, -1}});
  const auto rms = start<pair>(optim::clip_by_block_rms(1)).step(params, gradients);
  const double size = std::sqrt((9 + 16 + 0.25) / 4);
  CHECK(rms[0][0] == Approx(3 / size));
  CHECK(rms[1] == gradients[1]);
  params = {{1, 1, 1, 1}, {0, 0}};
  const auto units = start<pair>(optim::adaptive_grad_clip(0.1)).step(params, gradients);
  const double first_column = std::sqrt(9 + 0.25);
  CHECK(units[0][0] == Approx(3 * 0.1 * std::sqrt(2.0) / first_column));
  CHECK(units[0][1] == Approx(-0.1 * std::sqrt(2.0)));
  CHECK(units[1][0] == Approx(0.1 * 1e-3 / std::sqrt(2.0)));
}

TEST_CASE("the norm of sharded gradients is that of the whole arrays: each element counts once, wherever it lies") {
  const std::vector<numbers> gradients{{3, 4, 0, 0}, {12}};
  const auto check = [&]<class Spec, class Mesh>(Spec, Mesh) {
    using model = layer<Spec, P<>, shape<4>, shape<1>>;
    CHECK(norm_of<model, Mesh>(gradients) == 13);
    const auto out = clipped<model, Mesh>(1, gradients);
    CHECK(out == clipped<layer<P<>, P<>, shape<4>, shape<1>>>(1, gradients));
    CHECK(out[0][0] == Approx(3.0 / 13).epsilon(2e-7));
    CHECK(out[1][0] == Approx(12.0 / 13).epsilon(2e-7));
  };
  check(P<"x">{}, mesh<axis<"x", 1>>{});
  check(P<"x">{}, mesh<axis<"x", 2>>{});
  check(P<"x">{}, mesh<axis<"x", 4>>{});
  check(P<axes<"data", "model">>{}, mesh<axis<"data", 2>, axis<"model", 2>>{});
}

TEST_CASE("on data=8 and data=2,model=4 clipping and AdamW give the one-device bits of whole numbers") {
  numbers w(64 * 8);
  numbers b(8);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) - 2;
  const auto run = [&]<class Ws, class Bs, class Mesh>(Ws, Bs, Mesh) {
    auto optimiser = start<layer<Ws, Bs, shape<64, 8>, shape<8>>, Mesh>(
        optim::chain(optim::clip_by_global_norm(1.0), optim::adamw(1e-2)));
    std::vector<numbers> params{b, b};
    params[0] = w;
    for (int i = 0; i < 3; ++i) optimiser.step(params, {w, b});
    return params;
  };
  using grid = mesh<axis<"data", 2>, axis<"model", 4>>;
  const auto alone = run(P<>{}, P<>{}, mesh<>{});
  CHECK(run(P<>{}, P<>{}, mesh<axis<"data", 8>>{}) == alone);
  CHECK(run(P<"data">{}, P<"data">{}, mesh<axis<"data", 8>>{}) == alone);
  CHECK(run(P<"data", "model">{}, P<"model">{}, grid{}) == alone);
  CHECK(run(P<"model">{}, P<>{}, grid{}) == alone);
}

TEST_CASE("hyperparameters outside their range are refused with name, value and range") {
  CHECK_THROWS_AS(optim::adam(-1.0), value_error);
  CHECK_THAT(message_of([] { optim::adam(1e-3, 1.0); }), Catch::Contains("b1 is 1") && Catch::Contains("[0, 1)"));
  CHECK_THAT(message_of([] { optim::adam(1e-3, 0.9, -0.5); }), Catch::Contains("b2 is -0.5"));
  CHECK_THAT(message_of([] { optim::adamw(1e-3, 0.9, 0.999, 1e-8, -1); }), Catch::Contains("weight_decay is -1"));
  CHECK_THAT(message_of([] { optim::sgd(0.1, 1.5); }), Catch::Contains("momentum is 1.5"));
  CHECK_THAT(message_of([] { optim::sgd(std::numeric_limits<double>::quiet_NaN()); }),
             Catch::Contains("learning_rate is"));
  CHECK_THAT(message_of([] { optim::clip_by_global_norm(-2); }),
             Catch::Contains("max_norm is -2") && Catch::Contains("at least 0"));
  CHECK_THROWS_AS(optim::clip_by_global_norm(std::numeric_limits<double>::quiet_NaN()), value_error);
}
