// SPDX-License-Identifier: Apache-2.0
// Losses against plain loops in float64, and their gradients at every edge.
#include "support.hpp"

#include <tessera/optim/losses.hpp>
#include <tessera/transform/grad.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace optim_test;
using graph::op;
using graph::value;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <std::int64_t... Extents>
using rows = expr<tensor<f32, shape<Extents...>>::type, mesh<>>;

struct answer {
  numbers losses;
  numbers to_first;
  numbers to_second;
};

/// What a loss of two arrays gives, and the gradients of the sum of it.
template <class Array, class Loss>
answer of(Loss loss, const numbers& first, const numbers& second) {
  graph::graph g;
  const Array a{{&g, g.add_parameter(Array::type)}};
  const Array b{{&g, g.add_parameter(Array::type)}};
  const auto made = loss(a, b);
  const int wrt[] = {a.handle.id, b.handle.id};
  const value total = graph::sum(value{&g, made.handle.id});
  const auto ids = transform::gradients(g, total.id, wrt);
  g.outputs = {{made.handle.id, -1}, {ids[0], -1}, {ids[1], -1}};
  const auto out = runtime::evaluate(g, std::vector{bytes_of(first), bytes_of(second)});
  return {numbers_of(out[0]), numbers_of(out[1]), numbers_of(out[2])};
}

void check_close(const numbers& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("place " << i);
    if (std::isinf(wanted[i])) CHECK(static_cast<double>(got[i]) == wanted[i]);
    else CHECK(got[i] == Approx(wanted[i]).epsilon(3e-6).margin(1e-6));
  }
}

/// Compares an elementwise loss with functions of the error in float64.
template <class Loss, class F, class D>
void check_errors(Loss loss, F f, D derivative) {
  const numbers predictions{0, 1, -1, 0.5f, 3, -7, 1e3f, 0.25f};
  const numbers targets{0, 0, 0, 1, 1, 2, 0, 0.25f};
  const answer a = of<rows<8>>(loss, predictions, targets);
  std::vector<double> losses, gradients;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double error = static_cast<double>(predictions[i]) - static_cast<double>(targets[i]);
    losses.push_back(f(error)), gradients.push_back(derivative(error));
  }
  check_close(a.losses, losses);
  check_close(a.to_first, gradients);
  for (double& x : gradients) x = -x;
  check_close(a.to_second, gradients);
}

}  // namespace

TEST_CASE("squared_error, l2_loss, huber_loss and log_cosh are their formulas, with their gradients") {
  check_errors([](auto p, auto t) { return optim::squared_error(p, t); }, [](double e) { return e * e; },
               [](double e) { return 2 * e; });
  check_errors([](auto p, auto t) { return optim::l2_loss(p, t); }, [](double e) { return e * e / 2; },
               [](double e) { return e; });
  for (const double delta : {1.0, 0.25, 4.0})
    check_errors([&](auto p, auto t) { return optim::huber_loss(p, t, delta); },
                 [&](double e) { return std::abs(e) <= delta ? e * e / 2 : delta * (std::abs(e) - delta / 2); },
                 [&](double e) { return std::clamp(e, -delta, delta); });
  check_errors([](auto p, auto t) { return optim::log_cosh(p, t); },
               [](double e) { return std::abs(e) + std::log1p(std::exp(-2 * std::abs(e))) - std::log(2.0); },
               [](double e) { return std::tanh(e); });
}

TEST_CASE("hinge_loss is 0 beyond the margin, its gradient 0 at the corner") {
  const answer a =
      of<rows<4>>([](auto p, auto t) { return optim::hinge_loss(p, t); }, {0.5f, 2, -1, 1}, {1, 1, -1, -1});
  check_close(a.losses, {0.5, 0, 0, 2});
  check_close(a.to_first, {-1, 0, 0, 1});
}

TEST_CASE("binary cross entropy has the gradient sigmoid minus label, at infinite logits too") {
  const numbers logits{0, 2, -3, 50, -50, infinity, -infinity, infinity};
  const numbers labels{1, 0, 0.25f, 1, 0, 1, 0, 0};
  const answer a =
      of<rows<8>>([](auto x, auto z) { return optim::sigmoid_binary_cross_entropy(x, z); }, logits, labels);
  std::vector<double> losses, gradients;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double x = static_cast<double>(logits[i]);
    const double z = static_cast<double>(labels[i]);
    const double positive = std::isinf(x) ? (x > 0 ? 0 : x) : -std::log1p(std::exp(-x));
    const double negative = std::isinf(x) ? (x > 0 ? -x : 0) : -std::log1p(std::exp(x));
    losses.push_back((z > 0 ? -z * positive : 0) + (z < 1 ? -(1 - z) * negative : 0));
    gradients.push_back(1 / (1 + std::exp(-x)) - z);
  }
  check_close(a.losses, losses);
  check_close(a.to_first, gradients);
}

TEST_CASE("soft cross entropy of an impossible class with label 0 is 0, and so is its gradient") {
  const answer a =
      of<rows<1, 2>>([](auto x, auto z) { return optim::softmax_cross_entropy(x, z); }, {-infinity, 0}, {0, 1});
  CHECK(a.losses == numbers{0});
  CHECK(a.to_first == numbers{0, 0});
}

TEST_CASE("smooth_labels spreads a share of probability over all classes") {
  graph::graph g;
  const rows<1, 4> labels{{&g, g.add_parameter(rows<1, 4>::type)}};
  g.outputs = {{optim::smooth_labels(labels, 0.2).handle.id, -1}};
  check_close(numbers_of(runtime::evaluate(g, std::vector<std::vector<std::byte>>{bytes_of({0, 1, 0, 0})})[0]),
              {0.05, 0.85, 0.05, 0.05});
}

TEST_CASE("divergence counts no class of probability 0, whatever its prediction") {
  const numbers logp{std::log(0.25f), std::log(0.75f), -infinity, 0};
  const answer a = of<rows<2, 2>>([](auto p, auto t) { return optim::kl_divergence(p, t); }, logp, {0.5f, 0.5f, 0, 1});
  check_close(a.losses, {0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 0});
  check_close(a.to_first, {-0.5, -0.5, 0, -1});
  for (const float x : a.to_second) CHECK(std::isfinite(x));
  const answer b = of<rows<2, 2>>([](auto p, auto t) { return optim::kl_divergence_with_log_targets(p, t); }, logp,
                                  {std::log(0.5f), std::log(0.5f), -infinity, 0});
  check_close(b.losses, {0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 0});
  check_close(b.to_first, {-0.5, -0.5, 0, -1});
  const answer impossible =
      of<rows<1, 2>>([](auto p, auto t) { return optim::kl_divergence(p, t); }, {-infinity, 0}, {0.5f, 0.5f});
  CHECK(impossible.losses == numbers{infinity});
}

TEST_CASE("cosine similarity of a vector of zeros is 0 and passes no gradient to it") {
  const answer a = of<rows<3, 2>>([](auto p, auto t) { return optim::cosine_similarity(p, t); }, {3, 4, 0, 0, 1, 0},
                                  {4, 3, 1, 1, 1, 1});
  check_close(a.losses, {0.96, 0, std::sqrt(0.5)});
  CHECK(a.to_first[2] == 0);
  CHECK(a.to_first[3] == 0);
  check_close({a.to_first[0], a.to_first[1]}, {(4.0 - 0.96 * 3) / 25, (3.0 - 0.96 * 4) / 25});
  const answer b = of<rows<1, 2>>([](auto p, auto t) { return optim::cosine_distance(p, t, 1e-6); }, {1, 0}, {0, 2});
  check_close(b.losses, {1});
}
