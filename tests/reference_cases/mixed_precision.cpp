// SPDX-License-Identifier: Apache-2.0
// Section 6.7: training in bfloat16 and in float16 with a loss scale, on float32 weights.
#include <tessera/nn/loss_scale.hpp>

#include "support.hpp"

#include <catch2/catch.hpp>

#include <map>

namespace mixed {

using namespace cases;
using ts::bf16, ts::f16, ts::f32;

struct network {
  ts::nn::linear<8, 64> first;
  ts::nn::linear<64, 64> second;
  ts::nn::linear<64, 1> third;
  TESSERA_MODULE(network, first, second, third)
};

/// Products summed, biases added and tanh taken in float32; every array between layers in D.
template <ts::dtype D>
inline constexpr auto loss_in = [](auto& model, auto x, auto y) {
  const auto layer = [](auto in, const auto& linear) {
    return ts::matmul(in, ts::astype<D>(linear.kernel), ts::preferred_element_type<f32>) + linear.bias;
  };
  const auto narrow = [](auto h) { return ts::astype<D>(h); };
  const auto h = narrow(ts::tanh(layer(narrow(ts::tanh(layer(narrow(x), model.first))), model.second)));
  return ts::mean(ts::square(ts::astype<f32>(narrow(layer(h, model.third))) - y));
};

/// Everything in float16.
inline constexpr auto half_loss = [](auto& model, auto x, auto y) {
  const auto layer = [](auto in, const auto& linear) {
    return ts::matmul(in, ts::astype<f16>(linear.kernel)) + ts::astype<f16>(linear.bias);
  };
  const auto h = ts::tanh(layer(ts::tanh(layer(ts::astype<f16>(x), model.first)), model.second));
  return ts::mean(ts::square(ts::astype<f32>(layer(h, model.third)) - y));
};

template <ts::dtype D>
inline constexpr auto step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss_in<D>)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

inline constexpr auto scaled_step = [](auto& model, auto& optimizer, auto& scale, auto x, auto y) {
  auto [l, grads] = scale.value_and_grad(half_loss)(model, x, y);
  const auto finite = scale.update(optimizer, model, grads);
  return std::tuple{l, finite};
};

/// The gradient of 1e-4 times a loss, array by array.
inline constexpr auto arrays = [](const auto& grads) {
  const auto both = [](const auto& layer) {
    return std::tuple{ts::reshard<P<>>(layer.kernel), ts::reshard<P<>>(layer.bias)};
  };
  return std::tuple_cat(both(grads.first), both(grads.second), both(grads.third));
};
inline constexpr auto small_gradient = [](auto& model, auto x, auto y) {
  const auto loss = [](auto& m, auto a, auto b) { return loss_in<f32>(m, a, b) * 1e-4F; };
  return arrays(ts::grad(loss)(model, x, y));
};
inline constexpr auto small_half_gradient = [](auto& model, auto& scale, auto x, auto y) {
  const auto loss = [](auto& m, auto a, auto b) { return half_loss(m, a, b) * 1e-4F; };
  const auto [l, grads] = scale.value_and_grad(loss)(model, x, y);
  return arrays(grads);
};

std::vector<double> all_of(const auto& tensors) {
  std::vector<double> all;
  const auto append = [&](const auto& t) {
    for (const float x : t.to_vector()) all.push_back(x);
  };
  std::apply([&](const auto&... t) { (append(t), ...); }, tensors);
  return all;
}

struct training {
  decltype(ts::init<network>(ts::nn::rngs{0})) model = ts::init<network>(ts::nn::rngs{0});
  decltype(ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(3e-3))) optimizer =
      ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(3e-3));
  ts::tensor<f32, ts::shape<512, 8>> x =
      ts::device_put<ts::shape<512, 8>, P<>, ts::mesh<>>(reference::load_npy<float>("s6_7_mlp_x.npy"));
  ts::tensor<f32, ts::shape<512, 1>> y =
      ts::device_put<ts::shape<512, 1>, P<>, ts::mesh<>>(reference::load_npy<float>("s6_7_mlp_y.npy"));

  training() {
    load(model.first.kernel, "s6_7_mlp_w0.npy");
    load(model.second.kernel, "s6_7_mlp_w1.npy");
    load(model.third.kernel, "s6_7_mlp_w2.npy");
  }
};

struct weights {
  ts::nn::variable<ts::nn::param, f32, ts::shape<2>> w;
  TESSERA_MODULE(weights, w)
};
inline constexpr auto guarded_step = [](auto& model, auto& optimizer, auto gradient) {
  const auto loss = [](auto& m, auto g) { return ts::sum(m.w * g); };
  optimizer.update(model, ts::grad(loss)(model, gradient));
};

template <ts::dtype D>
std::vector<double> losses() {
  training t;
  std::vector<double> all;
  for (int i = 0; i < 400; ++i) all.push_back(ts::jit<step<D>>(t.model, t.optimizer, t.x, t.y).item());
  return all;
}

}  // namespace mixed

using namespace mixed;

TEST_CASE("float32 and bfloat16 training follow the reference") {
  const std::vector<double> wide = losses<f32>();
  CHECK(reference::check("fp32_first_loss", wide.front()));
  std::map<std::string, double> some;
  for (const auto& [name, value] : reference::expected("fp32_loss_trajectory").items())
    some[name] = wide[std::stoul(name)];
  CHECK(reference::check("fp32_loss_trajectory", some));
  CHECK(reference::check("fp32_last_loss", wide.back()));
  const std::vector<double> narrow = losses<bf16>();
  CHECK(reference::check("bf16_first_loss", narrow.front()));
  CHECK(reference::check("bf16_last_loss", narrow.back()));
}

TEST_CASE("a loss scale keeps small gradients of float16") {
  training t;
  const std::vector<double> exact = all_of(ts::jit<small_gradient>(t.model, t.x, t.y));
  double largest = 0, squares = 0;
  for (const double g : exact) largest = std::max(largest, std::abs(g)), squares += g * g;
  CHECK(reference::check("small_grad_absmax", largest));
  const auto quality = [&](double factor) {
    const auto scale = ts::nn::make_static_loss_scale(factor);
    const std::vector<double> found = all_of(ts::jit<small_half_gradient>(t.model, scale, t.x, t.y));
    double lost = 0, apart = 0;
    bool finite = true;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      lost += found[i] == 0 && exact[i] != 0;
      apart += (found[i] - exact[i]) * (found[i] - exact[i]);
      finite = finite && std::isfinite(found[i]);
    }
    return reference::json{{"zero_fraction", lost / static_cast<double>(exact.size())},
                           {"relative_error", std::sqrt(apart / squares)},
                           {"finite", finite}};
  };
  CHECK(reference::check("fp16_quality_scale_2^0", quality(1)));
  CHECK(reference::check("fp16_quality_scale_2^15", quality(0x1p15)));
  CHECK(!quality(0x1p32)["finite"].get<bool>());
}

TEST_CASE("a loss scale moves as the reference's and skips the same steps") {
  training t;
  auto scale = ts::nn::make_loss_scale({.initial = 0x1p24, .period = 50});
  std::vector<double> scales, last;
  std::vector<int> finite;
  double loss = 0;
  for (int i = 0; i < 400; ++i) {
    scales.push_back(std::log2(ts::nn::to_vector(scale.scale)[0]));
    const auto [l, ok] = ts::jit<scaled_step>(t.model, t.optimizer, scale, t.x, t.y);
    loss = l.item();
    finite.push_back(ok.item());
  }
  const auto first_finite = std::find(finite.begin(), finite.end(), 1) - finite.begin();
  CHECK(reference::check("dynamic_scale_first_12",
                         reference::json{{"log2_scale", std::vector<double>(scales.begin(), scales.begin() + 12)},
                                         {"finite", std::vector<int>(finite.begin(), finite.begin() + 12)},
                                         {"first_finite", first_finite}}));
  const auto skipped = std::count(finite.begin(), finite.end(), 0);
  CHECK(ts::nn::to_vector(scale.skipped_steps)[0] == skipped);
  CHECK(reference::check("dynamic_scale_skipped_total", skipped));
  CHECK(reference::check("dynamic_scale_final_log2", std::log2(ts::nn::to_vector(scale.scale)[0])));
  CHECK(reference::check("fp16_dynamic_last_loss", loss));
}

TEST_CASE("an optimiser that applies finite updates alone counts the others") {
  auto model = ts::init<weights>(ts::nn::rngs{0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::apply_if_finite(ts::optim::sgd(0.1), 5));
  const std::vector<float> gradient{std::nanf(""), 1};
  ts::jit<guarded_step>(model, optimizer, ts::device_put<ts::shape<2>, P<>, ts::mesh<>>(gradient));
  CHECK(reference::check("apply_if_finite_nan",
                         reference::json{{"update", elements(model)},
                                         {"notfinite_count", ts::nn::to_vector(optimizer.state.notfinite_count)[0]}}));
}
