// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_cases.hpp"

using namespace layer_cases;

namespace {

using f64 = ts::param_dtype<ts::f64>;
using layer_norm = ts::nn::layer_norm<6, f64>;
using rms_norm = ts::nn::rms_norm<6, f64>;
using group_norm = ts::nn::group_norm<6, ts::num_groups<3>, f64>;
using x_type = array<ts::shape<4, 6>>;
using image = array<ts::shape<2, 3, 2, 6>>;

inline constexpr auto& step = weighted<call>;

struct moments {
  double mean = 0, variance = 0;
  explicit moments(const numbers& of) {
    for (const double x : of) mean += x / static_cast<double>(of.size());
    for (const double x : of) variance += (x - mean) * (x - mean) / static_cast<double>(of.size());
  }
};

/// The arrays of a norm are the first two inputs, the last output is its result.
void check_values(const numbers& found, const std::vector<numbers>& inputs, const numbers& normal) {
  REQUIRE(found.size() == normal.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(normal[i] * inputs[0][i % 6] + inputs[1][i % 6]).epsilon(1e-12).margin(1e-12));
}

}  // namespace

TEST_CASE("layer_norm: each row has mean 0 and variance 1, then scale and bias") {
  const auto g = trace<step, layer_norm, x_type, x_type>();
  const auto inputs = draw_inputs(g);
  numbers normal;
  for (std::size_t row = 0; row < 4; ++row) {
    const numbers x(inputs[3].begin() + static_cast<std::ptrdiff_t>(6 * row),
                    inputs[3].begin() + static_cast<std::ptrdiff_t>(6 * row + 6));
    const moments m(x);
    for (const double each : x) normal.push_back((each - m.mean) / std::sqrt(m.variance + 1e-6));
  }
  check_values(run(g, inputs).back(), inputs, normal);
  check_differences(g, inputs);
}

TEST_CASE("rms_norm: each row has mean square 1, then the scale") {
  const auto g = trace<step, rms_norm, x_type, x_type>();
  auto inputs = draw_inputs(g);
  numbers normal;
  for (std::size_t row = 0; row < 4; ++row) {
    double square = 1e-6;
    for (std::size_t i = 0; i < 6; ++i) square += inputs[2][6 * row + i] * inputs[2][6 * row + i] / 6;
    for (std::size_t i = 0; i < 6; ++i) normal.push_back(inputs[2][6 * row + i] / std::sqrt(square));
  }
  check_values(run(g, inputs).back(), {inputs[0], numbers(6)}, normal);
  check_differences(g, inputs);
}

TEST_CASE("group_norm: each group of channels of each image has mean 0 and variance 1") {
  const auto g = trace<step, group_norm, image, image>();
  const auto inputs = draw_inputs(g);
  numbers normal(inputs[3].size());
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t group = 0; group < 3; ++group) {
      const auto place = [&](std::size_t k) { return n * 36 + k / 2 * 6 + 2 * group + k % 2; };
      numbers x;
      for (std::size_t k = 0; k < 12; ++k) x.push_back(inputs[3][place(k)]);
      const moments m(x);
      for (std::size_t k = 0; k < 12; ++k) normal[place(k)] = (x[k] - m.mean) / std::sqrt(m.variance + 1e-6);
    }
  check_values(run(g, inputs).back(), inputs, normal);
  check_differences(g, inputs);
}

TEST_CASE("norms without arrays have none, and options replace what they start with") {
  using plain = ts::nn::layer_norm<6, ts::use_scale<false>, ts::use_bias<false>>;
  CHECK(trace<step, plain, array<ts::shape<4, 6>, ts::f32>, array<ts::shape<4, 6>, ts::f32>>().parameters.size() == 2);
  using told = ts::nn::rms_norm<6, ts::scale_init<ts::nn::initializers::constant(2)>>;
  CHECK(ts::nn::to_vector(ts::init<told>(ts::nn::rngs{0}).scale) == std::vector<float>(6, 2.0F));
}

TEST_CASE("layer-norm-constant-row: exactly the bias, and no gradient where the upstream is constant") {
  using layer = ts::nn::layer_norm<256, ts::epsilon<1e-5>>;
  using row = array<ts::shape<1, 256>, ts::f32>;
  const auto g = trace<step, layer, row, row>();
  numbers upstream(256, 0.75);
  const auto constant = run(g, {numbers(256, 1), numbers(256), upstream, numbers(256, 1234)});
  CHECK(constant.back() == numbers(256));
  CHECK(constant[3] == numbers(256));
  for (std::size_t i = 0; i < 256; ++i) upstream[i] = i == 7 ? 1 : 0;
  const auto one_of_them = run(g, {numbers(256, 1), numbers(256, 0.5), upstream, numbers(256, 1234)});
  CHECK(one_of_them.back() == numbers(256, 0.5));
  for (std::size_t i = 0; i < 256; ++i)
    CHECK(one_of_them[3][i] == Approx(316.2278 * (upstream[i] - 1.0 / 256)).epsilon(1e-5));
}

TEST_CASE("norms of 16-bit arrays are computed in float32 and rounded once") {
  using layer = ts::nn::layer_norm<6>;
  static constexpr auto rounded = [](auto& m, auto x) {
    return std::tuple(m(x), ts::astype<ts::bf16>(m(ts::astype<ts::f32>(x))));
  };
  const auto g = trace<rounded, layer, array<ts::shape<4, 6>, ts::bf16>>();
  const auto found = run(g, draw_inputs(g));
  CHECK(found[0] == found[1]);
  CHECK(std::abs(found[0][0]) > 0);
}

TEST_CASE("norms of arrays that are cut over a mesh give the one-device answer") {
  using cut_layer = ts::nn::layer_norm<6, f64, ts::scale<P<"model">>, ts::bias<P<"model">>>;
  using cut = array<ts::shape<4, 6>, ts::f64, P<"data", "model">, cluster>;
  using rows = array<ts::shape<4, 6>, ts::f64, P<"data">, cluster>;
  using images = array<ts::shape<2, 3, 2, 6>, ts::f64, P<"data", none, "model">, cluster>;
  const auto check = [](const ts::graph::graph& sharded, const ts::graph::graph& whole) {
    const auto inputs = draw_inputs(whole);
    check_close(run(sharded, inputs), run(whole, inputs), 1e-13);
  };
  check(trace<step, cut_layer, cut, cut>(), trace<step, layer_norm, x_type, x_type>());
  check(trace<step, rms_norm, rows, rows>(), trace<step, rms_norm, x_type, x_type>());
  check(trace<step, group_norm, images, images>(), trace<step, group_norm, image, image>());
}
