// SPDX-License-Identifier: Apache-2.0
// A stack of layers computes what its layers do one after the other.
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <tuple>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

namespace {

struct layer {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<8, 8>, P<>, ts::nn::initializers::lecun_normal()> weight;
  ts::nn::variable<ts::nn::batch_stat, ts::f32, ts::shape<8>> seen;
  TESSERA_MODULE(layer, weight, seen)

  constexpr auto operator()(auto x) {
    seen = ts::sum<0>(x);
    return x + ts::tanh(ts::matmul(x, weight));
  }
};
struct deep {
  ts::nn::stack<3, layer> layers;
  TESSERA_MODULE(deep, layers)
};

inline constexpr auto stacked_step = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad([](auto& m, auto in) { return ts::sum(m.layers(in)); })(model, x);
  return std::tuple(l, ts::reshard<P<>>(grads.layers.template get<&layer::weight>()));
};
inline constexpr auto checkpointed_step = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad([](auto& m, auto in) {
    const auto call = [](auto& each, auto h) { return h + ts::tanh(ts::matmul(h, each.weight)); };
    return ts::sum(m.layers.apply([&](auto& each, auto h) { return ts::checkpoint(call)(each, h); }, in));
  })(model, x);
  return std::tuple(l, ts::reshard<P<>>(grads.layers.template get<&layer::weight>()));
};
inline constexpr auto written_out_step = [](auto w, auto x) {
  auto [l, grads] = ts::value_and_grad([](auto weights, auto in) {
    const auto each = [&](auto h, auto weight) { return h + ts::tanh(ts::matmul(h, weight)); };
    return ts::sum(each(each(each(in, ts::slice<0>(weights)), ts::slice<1>(weights)), ts::slice<2>(weights)));
  })(w, x);
  return std::tuple(l, grads);
};
inline constexpr auto seen_step = [](auto w, auto x) {
  auto h1 = x + ts::tanh(ts::matmul(x, ts::slice<0>(w)));
  return std::tuple(ts::sum<0>(x), ts::sum<0>(h1), ts::sum<0>(h1 + ts::tanh(ts::matmul(h1, ts::slice<1>(w)))));
};

}  // namespace

TEST_CASE("A stack has the value, the gradients and the states of its layers, with checkpoints too") {
  auto model = ts::init<deep>(ts::nn::rngs{3});
  std::vector<float> host(4 * 8);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = 0.1F * static_cast<float>(i % 7) - 0.3F;
  const auto x = ts::device_put<ts::shape<4, 8>, P<>, ts::mesh<>>(host);
  const auto w =
      ts::device_put<ts::shape<3, 8, 8>, P<>, ts::mesh<>>(ts::nn::to_vector(model.layers.get<&layer::weight>()));

  const auto [expected, slopes] = ts::jit<written_out_step>(w, x);
  const auto [value, gradients] = ts::jit<stacked_step>(model, x);
  const auto [again, same] = ts::jit<checkpointed_step>(model, x);
  CHECK(value.item() == expected.item());
  CHECK(gradients.to_vector() == slopes.to_vector());
  CHECK(again.item() == expected.item());
  CHECK(same.to_vector() == slopes.to_vector());

  const auto [first, second, third] = ts::jit<seen_step>(w, x);
  std::vector<float> seen = first.to_vector();
  for (const auto& more : {second.to_vector(), third.to_vector()}) seen.insert(seen.end(), more.begin(), more.end());
  CHECK(ts::nn::to_vector(model.layers.get<&layer::seen>()) == seen);
}
