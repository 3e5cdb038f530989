// SPDX-License-Identifier: Apache-2.0
// Section 6.5 and exercise 1: gradients of a batch from micro-batches, on one device and on eight.
#include "support.hpp"

#include <catch2/catch.hpp>

namespace accumulation {

using namespace cases;

struct mlp {
  ts::nn::linear<16, 32> first;
  ts::nn::linear<32, 1> second;
  TESSERA_MODULE(mlp, first, second)

  constexpr auto operator()(auto x) { return second(ts::tanh(first(x))); }
};

inline constexpr auto mean_loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto sum_loss = [](auto& model, auto x, auto y) { return ts::sum(ts::square(model(x) - y)); };

/// Loss and gradients as arrays.
constexpr auto as_arrays(const auto& made) {
  const auto& grads = made.gradients;
  return std::tuple(made.value, ts::reshard<P<>>(grads.first.kernel), ts::reshard<P<>>(grads.first.bias),
                    ts::reshard<P<>>(grads.second.kernel), ts::reshard<P<>>(grads.second.bias));
}

inline constexpr auto big = [](auto& model, auto x, auto y) {
  return as_arrays(ts::value_and_grad(mean_loss)(model, x, y));
};
inline constexpr auto big_sum = [](auto& model, auto x, auto y) {
  return as_arrays(ts::value_and_grad(sum_loss)(model, x, y));
};
inline constexpr auto small_ones = [](auto& model, auto xs, auto ys) {
  return as_arrays(ts::accumulate(mean_loss)(model, xs, ys));
};
inline constexpr auto small_sums = [](auto& model, auto xs, auto ys) {
  return as_arrays(ts::accumulate<ts::micro_batches::sum>(sum_loss)(model, xs, ys));
};
inline constexpr auto wrongly_averaged = [](auto& model, auto xs, auto ys) {
  return as_arrays(ts::accumulate<ts::micro_batches::mean>(sum_loss)(model, xs, ys));
};
inline constexpr auto train_step = [](auto& model, auto& optimizer, auto xs, auto ys) {
  auto [l, grads] = ts::accumulate(mean_loss)(model, xs, ys);
  optimizer.update(model, grads);
  return l;
};

/// The numbers of a fixture, in row-major order, as an array of another shape.
template <class Mesh, class Spec, class Shape>
auto put(const std::string& file) {
  const auto host = reference::load_npy<float>(file);
  return ts::device_put<Shape, Spec, Mesh>(std::vector<float>(host.begin(), host.end()));
}

template <class Mesh>
auto loaded_model() {
  auto model = ts::init<mlp, Mesh>(ts::nn::rngs{0});
  load(model.first.kernel, "s6_5_w1.npy");
  load(model.second.kernel, "s6_5_w2.npy");
  return model;
}

using one = ts::mesh<>;
using data8 = ts::mesh<ts::axis<"data", 8>>;
template <class Mesh>
using bound_mlp = ts::nn::bound<mlp, Mesh>;
template <class Mesh>
using adam = decltype(ts::nn::optimizer<ts::nn::param>(std::declval<bound_mlp<Mesh>&>(), ts::optim::adam(1e-2)));

using micro_x = ts::tensor<ts::f32, ts::shape<4, 16, 16>, P<none, "data">, data8>;
using micro_y = ts::tensor<ts::f32, ts::shape<4, 16, 1>, P<none, "data">, data8>;
using sharded_step = ts::lowered<train_step, bound_mlp<data8>, adam<data8>, micro_x, micro_y>;
static_assert(only(sharded_step::collectives(), 1, 0, 0));

/// All numbers of a tuple of tensors but the first.
template <class Made>
std::vector<double> gradients_of(const Made& made) {
  std::vector<double> all;
  std::apply(
      [&](const auto&, const auto&... each) {
        const auto append = [&](const auto& v) { all.insert(all.end(), v.begin(), v.end()); };
        (append(each.to_vector()), ...);
      },
      made);
  return all;
}

std::vector<double> norm_and_sum_of(const std::vector<float>& values) {
  double squares = 0, sum = 0;
  for (const double x : values) squares += x * x, sum += x;
  return {std::sqrt(squares), sum};
}

// Exercise 1: the loss is the mean over all tokens that count, and micro-batches hold different numbers of them.

inline constexpr auto token_loss = [](auto w, auto x, auto y, auto mask) {
  const auto residual = ts::tanh(ts::sum<-1>(x * w)) - y;
  return std::pair(ts::sum(ts::square(residual) * mask), ts::sum(mask));
};
inline constexpr auto token_mean = [](auto w, auto x, auto y, auto mask) {
  const auto [sum, count] = token_loss(w, x, y, mask);
  return sum / count;
};
inline constexpr auto whole_tokens = [](auto w, auto x, auto y, auto mask) {
  auto [l, g] = ts::value_and_grad(token_mean)(w, x, y, mask);
  return std::tuple(l, g, ts::sum(mask));
};
inline constexpr auto weighted_tokens = [](auto w, auto xs, auto ys, auto masks) {
  auto [l, g] = ts::accumulate<ts::micro_batches::weighted>(token_loss)(w, xs, ys, masks);
  return std::tuple(l, g);
};
inline constexpr auto averaged_tokens = [](auto w, auto xs, auto ys, auto masks) {
  auto [l, g] = ts::accumulate(token_mean)(w, xs, ys, masks);
  return std::tuple(l, g);
};

}  // namespace accumulation

TEST_CASE("Gradients of four micro-batches are those of the batch, and sums of losses are not averaged") {
  using namespace accumulation;
  auto model = loaded_model<one>();
  const auto x = put<one, P<>, ts::shape<64, 16>>("s6_5_x.npy");
  const auto y = put<one, P<>, ts::shape<64, 1>>("s6_5_y.npy");
  const auto xs = put<one, P<>, ts::shape<4, 16, 16>>("s6_5_x.npy");
  const auto ys = put<one, P<>, ts::shape<4, 16, 1>>("s6_5_y.npy");

  const auto whole = ts::jit<big>(model, x, y);
  CHECK(reference::check("big_batch_loss_and_grad",
                         reference::json{{"loss", std::get<0>(whole).item()},
                                         {"w1", norm_and_sum_of(std::get<1>(whole).to_vector())},
                                         {"b1", norm_and_sum_of(std::get<2>(whole).to_vector())},
                                         {"w2", norm_and_sum_of(std::get<3>(whole).to_vector())},
                                         {"b2", norm_and_sum_of(std::get<4>(whole).to_vector())}}));
  const auto accumulated = ts::jit<small_ones>(model, xs, ys);
  CHECK(reference::check("accumulated_vs_big", largest_difference(gradients_of(whole), gradients_of(accumulated))));

  const auto summed = gradients_of(ts::jit<big_sum>(model, x, y));
  CHECK(
      reference::check("sum_loss_added", largest_difference(summed, gradients_of(ts::jit<small_sums>(model, xs, ys)))));
  CHECK(reference::check("sum_loss_wrongly_averaged",
                         largest_difference(summed, gradients_of(ts::jit<wrongly_averaged>(model, xs, ys)))));
}

TEST_CASE("Eight devices accumulate locally, add up once, and take the reference's Adam steps") {
  using namespace accumulation;
  auto model = loaded_model<data8>();
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-2));
  const auto xs = put<data8, P<none, "data">, ts::shape<4, 16, 16>>("s6_5_x.npy");
  const auto ys = put<data8, P<none, "data">, ts::shape<4, 16, 1>>("s6_5_y.npy");
  auto alone = loaded_model<one>();
  const auto whole = gradients_of(ts::jit<big>(alone, put<one, P<>, ts::shape<64, 16>>("s6_5_x.npy"),
                                               put<one, P<>, ts::shape<64, 1>>("s6_5_y.npy")));
  CHECK(reference::check("dp_accumulation_vs_big",
                         largest_difference(whole, gradients_of(ts::jit<small_ones>(model, xs, ys)))));

  for (int i = 0; i < 5; ++i) ts::jit<train_step>(model, optimizer, xs, ys);
  CHECK(reference::check("params_after_5_accumulated_adam_steps",
                         reference::json{{"w1", norm_and_sum(model.first.kernel)},
                                         {"b1", norm_and_sum(model.first.bias)},
                                         {"w2", norm_and_sum(model.second.kernel)},
                                         {"b2", norm_and_sum(model.second.bias)}}));
}

TEST_CASE("Micro-batches weighted by their tokens give the gradient of the mean over all tokens") {
  using namespace accumulation;
  const auto w = put<one, P<>, ts::shape<8>>("ex1_w.npy");
  const auto whole = ts::jit<whole_tokens>(w, put<one, P<>, ts::shape<32, 12, 8>>("ex1_x.npy"),
                                           put<one, P<>, ts::shape<32, 12>>("ex1_y.npy"),
                                           put<one, P<>, ts::shape<32, 12>>("ex1_mask.npy"));
  const auto grad = std::get<1>(whole).to_vector();
  const reference::json got{
      {"tokens", std::get<2>(whole).item()}, {"mean_loss", std::get<0>(whole).item()}, {"grad", grad}};
  CHECK(reference::check("ex1_answer_loss_and_grad", got));
  const auto xs = put<one, P<>, ts::shape<4, 8, 12, 8>>("ex1_x.npy");
  const auto ys = put<one, P<>, ts::shape<4, 8, 12>>("ex1_y.npy");
  const auto masks = put<one, P<>, ts::shape<4, 8, 12>>("ex1_mask.npy");
  const auto difference = [&](const auto& made) {
    const auto other = std::get<1>(made).to_vector();
    return largest_difference({grad.begin(), grad.end()}, {other.begin(), other.end()});
  };
  CHECK(reference::check("ex1_answer_weighted_accumulation_error",
                         difference(ts::jit<weighted_tokens>(w, xs, ys, masks))));
  CHECK(reference::check("ex1_answer_plain_average_error", difference(ts::jit<averaged_tokens>(w, xs, ys, masks))));
}
