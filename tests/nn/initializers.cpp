// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/initializers.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/stack.hpp>
#include <tessera/nn/rngs.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

namespace nn = tessera::nn;
namespace init = tessera::nn::initializers;
namespace rnd = tessera::random;

static_assert(nn::Initializer<nn::initializer> && nn::Initializer<nn::initializer, double>);

template <nn::initializer I>
struct usable_as_template_argument {};
[[maybe_unused]] constexpr usable_as_template_argument<init::lecun_normal()> instance{};

namespace {

using shape = std::vector<std::int64_t>;

template <class T = float>
std::vector<T> whole(const nn::initializer& initializer, const shape& s, rnd::key k = rnd::make_key(0)) {
  std::size_t size = 1;
  for (const std::int64_t extent : s) size *= static_cast<std::size_t>(extent);
  std::vector<T> values(size);
  initializer.fill(std::span(values), k, s);
  return values;
}

template <class T>
double variance(const std::vector<T>& values) {
  double sum = 0, squares = 0;
  for (const T x : values) sum += double{x}, squares += double{x} * double{x};
  const auto n = static_cast<double>(values.size());
  return squares / n - sum / n * (sum / n);
}

template <class T>
double largest(const std::vector<T>& values) {
  double most = 0;
  for (const T x : values) most = std::max(most, std::abs(double{x}));
  return most;
}

/// A layer as object-style models build it: one key for the kernel, one for the zero bias.
std::vector<double> linear(nn::rngs& rngs, const std::vector<double>& x, std::size_t outputs) {
  const auto kernel = whole(init::lecun_normal(),
                            {static_cast<std::int64_t>(x.size()), static_cast<std::int64_t>(outputs)}, rngs("params"));
  rngs("params");
  std::vector<double> y(outputs);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < outputs; ++j) y[j] += x[i] * double{kernel[i * outputs + j]};
  return y;
}

}  // namespace

TEST_CASE("an element's value depends on its global index only, so shards fill themselves") {
  const shape s{12, 10};
  for (const nn::initializer& each : {init::lecun_normal(), init::he_uniform(), init::normal(), init::uniform(),
                                      init::ones(), init::truncated_normal()}) {
    const auto all = whole(each, s);
    std::vector<float> part(7);
    each.fill(std::span(part), rnd::make_key(0), s, 33);
    for (std::size_t i = 0; i < part.size(); ++i) {
      CHECK(part[i] == all[33 + i]);
      CHECK(each.at<float>(rnd::make_key(0), s, 33 + i) == all[33 + i]);
    }
  }
}

TEST_CASE("constants fill with their value") {
  CHECK(whole(init::zeros(), {3}) == std::vector<float>(3, 0.0F));
  CHECK(whole(init::ones(), {2, 2}) == std::vector<float>(4, 1.0F));
  CHECK(whole<double>(init::constant(0.1), {}) == std::vector<double>{0.1});
}

TEMPLATE_TEST_CASE("scaled draws have the variance gain / fan", "", float, double) {
  const shape s{300, 200};
  CHECK(variance(whole<TestType>(init::lecun_normal(), s)) == Approx(1.0 / 300).epsilon(0.02));
  CHECK(variance(whole<TestType>(init::lecun_uniform(), s)) == Approx(1.0 / 300).epsilon(0.02));
  CHECK(variance(whole<TestType>(init::he_normal(), s)) == Approx(2.0 / 300).epsilon(0.02));
  CHECK(variance(whole<TestType>(init::he_uniform(), s)) == Approx(2.0 / 300).epsilon(0.02));
  CHECK(variance(whole<TestType>(init::xavier_normal(), s)) == Approx(1.0 / 250).epsilon(0.02));
  CHECK(variance(whole<TestType>(init::xavier_uniform(), s)) == Approx(1.0 / 250).epsilon(0.02));
  CHECK(largest(whole<TestType>(init::xavier_uniform(), s)) < std::sqrt(3.0 / 250));
  CHECK(largest(whole<TestType>(init::lecun_normal(), s)) <= 2 * std::sqrt(1.0 / 300) / 0.8796);
}

TEST_CASE("plain draws are multiplied by what they are given") {
  const shape s{50'000};
  CHECK(variance(whole(init::normal(0.02), s)) == Approx(0.0004).epsilon(0.02));
  CHECK(std::sqrt(variance(whole(init::truncated_normal(0.02), s))) == Approx(0.02 * 0.8796).epsilon(0.02));
  CHECK(largest(whole(init::truncated_normal(0.02), s)) <= 0.04);
  const auto uniform = whole(init::uniform(0.5), s);
  CHECK(*std::min_element(uniform.begin(), uniform.end()) >= 0);
  CHECK(largest(uniform) < 0.5);
  CHECK(variance(uniform) == Approx(0.25 / 12).epsilon(0.02));
}

TEST_CASE("leading dimensions are a receptive field") {
  constexpr std::array<std::int64_t, 4> convolution{3, 5, 7, 11};
  CHECK(nn::fans(convolution).in == 3 * 5 * 7);
  CHECK(nn::fans(convolution).out == 3 * 5 * 11);
  CHECK(variance(whole(init::lecun_normal(), {3, 5, 20, 200})) == Approx(1.0 / 300).epsilon(0.02));
}

TEST_CASE("fans count the dimensions that are named, the rest is a receptive field") {
  constexpr std::array<std::int64_t, 3> heads{64, 4, 16};
  constexpr nn::fans split(heads, {.in = 0, .out = {1, 2}});
  STATIC_REQUIRE((split.in == 64 && split.out == 64));
  constexpr nn::fans joined(heads, {.in = {0, 1}, .out = -1});
  STATIC_REQUIRE((joined.in == 256 && joined.out == 16));
  constexpr std::array<std::int64_t, 3> side_by_side{10, 20, 30};
  constexpr nn::fans one(side_by_side, {.batch = 0});
  STATIC_REQUIRE((one.in == 20 && one.out == 30));
  CHECK((whole(init::he_normal({.in = 0, .out = {1, 2}}), {64, 4, 16}) == whole(init::he_normal(), {64, 64})));
  CHECK((whole(init::glorot_uniform(), {8, 4}) == whole(init::xavier_uniform(), {8, 4})));
  CHECK_THROWS_WITH(whole(init::lecun_normal({.in = 2}), {5, 4}), "nn::fans: dimension 2 is outside [-2, 2)");
}

TEST_CASE("orthogonal: columns at right angles, rows where those are fewer, with positive diagonal of R") {
  const auto product = [](const std::vector<double>& q, std::size_t i, std::size_t j, std::size_t n, std::size_t step,
                          std::size_t next) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += q[i * step + k * next] * q[j * step + k * next];
    return sum;
  };
  const auto tall = whole<double>(init::orthogonal(), {7, 4});
  const auto wide = whole<double>(init::orthogonal(2), {4, 7});
  const auto image = whole<double>(init::orthogonal(), {3, 2, 2, 5});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      CHECK(product(tall, i, j, 7, 1, 4) == Approx(i == j).margin(1e-14));
      CHECK(product(wide, i, j, 7, 7, 1) == Approx(i == j ? 4 : 0).margin(1e-14));
      CHECK(product(image, i, j, 12, 1, 5) == Approx(i == j).margin(1e-14));
    }
  std::vector<double> normal(28);
  rnd::fill_normal(std::span(normal), rnd::make_key(0), 0);
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = j; i < 4; ++i) {  // R = Q^T A: its column j below the diagonal is zero
      double r = 0;
      for (std::size_t k = 0; k < 7; ++k) r += tall[4 * k + i] * normal[4 * k + j];
      if (i == j) CHECK(r > 0);
      else CHECK(r == Approx(0).margin(1e-13));
    }
  std::vector<double> part(5);
  init::orthogonal().fill(std::span(part), rnd::make_key(0), shape{7, 4}, 6);
  CHECK(part == std::vector<double>(tall.begin() + 6, tall.begin() + 11));
  CHECK_THROWS_AS(whole(init::orthogonal(), {5}), tessera::shape_error);
}

TEST_CASE("an orthogonal kernel is the same on any mesh, and layers of a stack have one each") {
  using tessera::P, tessera::none;
  using cluster = tessera::mesh<tessera::axis<"data", 2>, tessera::axis<"model", 2>>;
  using start = tessera::kernel_init<init::orthogonal()>;
  const auto one = tessera::init<nn::linear<6, 4, start>>(nn::rngs{3});
  const auto cut = tessera::init<nn::linear<6, 4, start, tessera::kernel<P<"data", "model">>>, cluster>(nn::rngs{3});
  CHECK(nn::to_vector(cut.kernel) == nn::to_vector(one.kernel));
  CHECK(nn::to_vector(one.kernel) == whole(init::orthogonal(), {6, 4}, nn::rngs{3}("params")));
  const auto layers = tessera::init<nn::stack<2, nn::linear<4, 4, start>>>(nn::rngs{3});
  const auto kernels = nn::to_vector(layers.get<&nn::linear<4, 4, start>::kernel>());
  double product = 0, square = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    square += kernels[16 + 4 * k] * kernels[16 + 4 * k];
    product += kernels[16 + 4 * k] * kernels[16 + 4 * k + 1];
  }
  CHECK(square == Approx(1));
  CHECK(product == Approx(0).margin(1e-6));
}

TEST_CASE("an empty array needs nothing") { CHECK(whole(init::lecun_normal(), {0, 4}).empty()); }

TEST_CASE("a vector has no fans, and an element outside is refused") {
  const rnd::key k = rnd::make_key(0);
  CHECK_THROWS_AS(whole(init::lecun_normal(), {5}), tessera::shape_error);
  CHECK_THROWS_WITH(whole(init::he_normal(), {5}), "nn::fans: a kernel needs rank 2 or more, this shape has rank 1");
  CHECK_THROWS_AS(init::ones().at<float>(k, shape{2, -3}, 0), tessera::shape_error);
  CHECK_THROWS_AS(init::ones().at<float>(k, shape{2, 3}, 6), tessera::index_error);
  std::vector<float> out(4);
  CHECK_THROWS_WITH(init::ones().fill(std::span(out), k, shape{2, 3}, 3),
                    "nn::initializer: elements [3, 7) are outside [0, 6)");
}

TEST_CASE("object-style models start with the reference weights and logits") {
  nn::rngs one{0};
  CHECK(reference::check("linear_3_4_object_init_on_ones", linear(one, {1, 1, 1}, 4)));

  nn::rngs rngs{0};
  auto hidden = linear(rngs, std::vector<double>(784, 1.0), 128);
  for (double& h : hidden) h = std::max(h, 0.0);
  CHECK(reference::check("mlp_784_128_10_object_init_logits", linear(rngs, hidden, 10)));

  const auto norm_and_sum = [](const std::vector<float>& w) {
    double squares = 0, sum = 0;
    for (const float x : w) squares += double{x} * double{x}, sum += double{x};
    return std::vector<double>{std::sqrt(squares), sum};
  };
  nn::rngs mlp{0};
  const auto w1 = norm_and_sum(whole(init::lecun_normal(), {64, 256}, mlp("params")));
  const auto w2 = norm_and_sum(whole(init::lecun_normal(), {256, 64}, mlp("params")));
  CHECK(reference::check("object_mlp_initial_weights", reference::json{{"w1", w1}, {"w2", w2}}));
}
