// SPDX-License-Identifier: Apache-2.0
// Steps that change copies of their arguments on purpose, and gradients as objects of their own.
#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/types.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;

using model_type = ts::nn::bound<ts::nn::linear<4, 2>, ts::mesh<>>;
using optimizer_type = decltype(ts::nn::optimizer<ts::nn::param>(model_type{}, ts::optim::sgd(0.1)));
using batch = ts::tensor<ts::f32, ts::shape<3, 4>>;

constexpr auto loss = [](auto& model, auto x) { return ts::mean(ts::square(model(x))); };

/// Evaluates at another place; the argument stays.
inline constexpr auto perturbed = [](auto& model, auto x) {
  auto moved = model;
  moved.bias = moved.bias + 1;
  return loss(moved, x);
};

/// Sharpness-aware minimisation: the gradient at the perturbed place updates the argument.
inline constexpr auto sharpness_aware = [](auto& model, auto& optimizer, auto x) {
  auto grads = ts::grad(loss)(model, x);
  auto moved = model;
  moved.bias = moved.bias + grads.bias * 0.05;
  auto [l, there] = ts::value_and_grad(loss)(moved, x);
  static_assert(std::is_same_v<decltype(there), ts::gradients<model_type>>);
  optimizer.update(model, there);
  return l;
};

/// A whole module assigned.
inline constexpr auto copied = [](auto& to, auto& from) { to = from; };

template <class Program>
constexpr int written() {
  int n = 0;
  for (const ts::graph::interface_value& r : Program::program().results) n += r.alias >= 0;
  return n;
}

TEST_CASE("A step may change a copy of its argument on purpose") {
  STATIC_REQUIRE(written<ts::lowered<perturbed, model_type, batch>>() == 0);
  STATIC_REQUIRE(written<ts::lowered<sharpness_aware, model_type, optimizer_type, batch>>() == 2);
}

TEST_CASE("Assigning a module to another one changes the one that is assigned to") {
  STATIC_REQUIRE(written<ts::lowered<copied, model_type, model_type>>() == 2);
}

TEST_CASE("Gradients have the members of what they belong to") {
  int count = 0;
  ts::gradients<model_type> grads{};
  ts::visit_variables(grads, [&](auto&) { ++count; });
  CHECK(count == 2);
  STATIC_REQUIRE(std::is_same_v<decltype(grads.bias), decltype(model_type{}.bias)>);
}
