// SPDX-License-Identifier: Apache-2.0
// Section 6.8 and exercise 3, written for one device by shard_map: tensor parallelism with its own sum, FSDP with its
// own gathers, a pipeline with its own sends.
#include "support.hpp"

#include <catch2/catch.hpp>

namespace by_hand {

using namespace cases;
using ts::in_specs, ts::out_specs, ts::tiled;

using grid = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
using fsdp = ts::mesh<ts::axis<"fsdp", 8>>;
using stages = ts::mesh<ts::axis<"stage", 4>>;

template <class Mesh, class Shape, class Spec>
using array = ts::tensor<ts::f32, Shape, Spec, Mesh>;

/// The array of a fixture.
template <class Array>
Array load_array(const std::string& file) {
  return ts::device_put<typename Array::shape_type, typename Array::spec_type, typename Array::mesh_type>(
      reference::load_npy<float>(file));
}

// Tensor parallelism: relu(x w1) w2 with w1 by columns and w2 by rows; a device's product is a part of the sum.

using first = array<grid, ts::shape<64, 256>, P<none, "model">>;
using second = array<grid, ts::shape<256, 64>, P<"model">>;
using rows = array<grid, ts::shape<32, 64>, P<"data">>;

inline constexpr auto mlp_body = [](auto x, auto w1, auto w2) {
  const auto h = ts::relu(ts::matmul(x, w1));
  const auto part = ts::matmul(h, w2);
  static_assert(ts::type_text<decltype(h)>() == "float32[16,64]{V:data,model}");
  static_assert(ts::type_text<decltype(part)>() == "float32[16,64]{V:data,model}");
  return ts::psum<"model">(part);
};
inline constexpr auto mlp = [](auto x, auto w1, auto w2) {
  return ts::shard_map<in_specs<P<"data">, P<none, "model">, P<"model">>, out_specs<P<"data">>>(mlp_body)(x, w1, w2);
};
inline constexpr auto mlp_of_whole_arrays = [](auto x, auto w1, auto w2) {
  return ts::matmul(ts::relu(ts::matmul(x, w1)), w2, ts::out_sharding<P<"data">>);
};

static_assert(only(ts::lowered<mlp, rows, first, second>::collectives(), 1, 0, 0));

// FSDP: weights and batch in eight; each device gathers the weights it needs.

using w1_rows = array<fsdp, ts::shape<64, 256>, P<"fsdp">>;
using w2_rows = array<fsdp, ts::shape<256, 64>, P<"fsdp">>;
using batch = array<fsdp, ts::shape<64, 64>, P<"fsdp">>;

inline constexpr auto local_loss = [](auto weights, auto x, auto y) {
  const auto w1 = ts::all_gather<"fsdp">(std::get<0>(weights), tiled);
  const auto w2 = ts::all_gather<"fsdp">(std::get<1>(weights), tiled);
  return ts::pmean<"fsdp">(ts::mean(ts::square(ts::matmul(ts::relu(ts::matmul(x, w1)), w2) - y)));
};
inline constexpr auto fsdp_loss = [](auto weights, auto x, auto y) {
  return ts::shard_map<in_specs<P<"fsdp">, P<"fsdp">, P<"fsdp">>, out_specs<P<>>>(local_loss)(weights, x, y);
};
inline constexpr auto loss_of = [](auto w1, auto w2, auto x, auto y) { return fsdp_loss(std::tuple{w1, w2}, x, y); };

/// The gradient of the mapped function.
inline constexpr auto gradient = [](auto w1, auto w2, auto x, auto y) {
  return ts::grad(fsdp_loss)(std::tuple{w1, w2}, x, y);
};

/// The loss and its gradient, taken by each device for its own rows.
inline constexpr auto gradient_inside = [](auto w1, auto w2, auto x, auto y) {
  const auto body = [](auto weights, auto x_rows, auto y_rows) {
    const auto [l, grads] = ts::value_and_grad(local_loss)(weights, x_rows, y_rows);
    return std::pair(l, grads);
  };
  return ts::shard_map<out_specs<P<>, P<"fsdp">>>(body)(std::tuple{w1, w2}, x, y);
};

template <const auto& F>
using fsdp_program = ts::lowered<F, w1_rows, w2_rows, batch, batch>;

static_assert(fsdp_program<gradient>::collectives().all_gather == 2 &&
              fsdp_program<gradient>::collectives().reduce_scatter == 2 &&
              fsdp_program<gradient>::collectives().all_reduce == 0);
static_assert(only(fsdp_program<loss_of>::collectives(), 1, 2, 0));
static_assert(only(fsdp_program<gradient_inside>::collectives(), 1, 2, 2));

std::vector<double> numbers(const auto& tensor) {
  const auto held = tensor.to_vector();
  return {held.begin(), held.end()};
}
std::vector<double> norm_and_sum_of(const std::vector<double>& array) {
  double squares = 0, sum = 0;
  for (const double x : array) squares += x * x, sum += x;
  return {std::sqrt(squares), sum};
}

/// The gradients of mean((relu(x w1) w2 - y)^2) on one device, in float32 as the published ones.
inline constexpr auto plain_gradient = [](auto w1, auto w2, auto x, auto y) {
  const auto loss = [](auto weights, auto a, auto b) {
    return ts::mean(ts::square(ts::matmul(ts::relu(ts::matmul(a, std::get<0>(weights))), std::get<1>(weights)) - b));
  };
  return ts::grad(loss)(std::tuple{w1, w2}, x, y);
};

// A pipeline: h = tanh(h W_s) for four stages, one a device; eight micro-batches, each stage hands on what it made.

using stage_weights = array<stages, ts::shape<4, 32, 32>, P<"stage">>;
using micro_batches = array<stages, ts::shape<64, 32>, P<>>;

inline constexpr auto pipeline_body = [](auto weights, auto x) {
  const auto w = ts::reshape<32, 32>(weights);
  const auto fed = ts::pad<ts::padding{0, 3}>(ts::reshape<8, 8, 32>(x), 0.0);
  const auto stage = ts::axis_index<"stage">(x);
  const auto tick = [&](auto received, auto micro_batch) {
    const auto made = ts::tanh(ts::matmul(ts::where(stage == 0, micro_batch, received), w));
    return std::pair(ts::ppermute<"stage">(made, ts::shift<1>), made);
  };
  const auto idle = ts::pcast<"stage">(ts::zeros<ts::shape<8, 32>>(x), ts::to_varying);
  const auto made = ts::scan(tick, idle, fed).second;
  const auto last = ts::slice<ts::range{3, 11}>(made);
  return ts::reshape<64, 32>(ts::psum<"stage">(ts::where(stage == 3, last, 0.0)));
};
inline constexpr auto pipeline = [](auto weights, auto x) {
  return ts::shard_map<out_specs<P<>>>(pipeline_body)(weights, x);
};

}  // namespace by_hand

using namespace by_hand;

TEST_CASE("an MLP with its own sum over the model axis is the one of whole arrays") {
  const auto w1 = load_array<first>("s6_8_w1.npy");
  const auto w2 = load_array<second>("s6_8_w2.npy");
  const auto x = load_array<rows>("s6_8_x.npy");
  const std::vector<double> y = numbers(ts::jit<mlp>(x, w1, w2));
  CHECK(largest_difference(y, numbers(ts::jit<mlp_of_whole_arrays>(x, w1, w2))) == 0);
  double sum = 0, largest = 0;
  for (const double v : y) sum += v, largest = std::max(largest, std::abs(v));
  const reference::json found = {{"row0[0:4]", {y[0], y[1], y[2], y[3]}}, {"sum", sum}, {"absmax", largest}};
  CHECK(reference::check("tp_forward_reference", found));
}

TEST_CASE("FSDP with its own gathers: loss and gradients are the reference's, gradients lie as the weights do") {
  const auto w1 = load_array<w1_rows>("ex3_w1.npy");
  const auto w2 = load_array<w2_rows>("ex3_w2.npy");
  const auto x = load_array<batch>("ex3_x.npy"), y = load_array<batch>("ex3_y.npy");
  CHECK(reference::check("ex3_answer_loss", ts::jit<loss_of>(w1, w2, x, y).item()));
  CHECK(reference::check("ex3_collectives", collectives<fsdp_program<gradient>>()));

  const auto [g1, g2] = ts::jit<gradient>(w1, w2, x, y);
  static_assert(std::is_same_v<decltype(g1), const w1_rows> && std::is_same_v<decltype(g2), const w2_rows>);
  const reference::json found = {{"w1", norm_and_sum_of(numbers(g1))}, {"w2", norm_and_sum_of(numbers(g2))}};
  CHECK(reference::check("ex3_answer_grads", found));

  const auto [l, grads] = ts::jit<gradient_inside>(w1, w2, x, y);
  CHECK(reference::check("ex3_answer_loss", l.item()));
  CHECK(largest_difference(numbers(std::get<0>(grads)), numbers(g1)) == 0);
  CHECK(largest_difference(numbers(std::get<1>(grads)), numbers(g2)) == 0);

  using whole1 = ts::tensor<ts::f32, ts::shape<64, 256>>;
  using whole2 = ts::tensor<ts::f32, ts::shape<256, 64>>;
  using whole_rows = ts::tensor<ts::f32, ts::shape<64, 64>>;
  const auto [p1, p2] =
      ts::jit<plain_gradient>(load_array<whole1>("ex3_w1.npy"), load_array<whole2>("ex3_w2.npy"),
                              load_array<whole_rows>("ex3_x.npy"), load_array<whole_rows>("ex3_y.npy"));
  CHECK(reference::check("ex3_answer_sharded_grad_diff", std::max(largest_difference(numbers(g1), numbers(p1)),
                                                                  largest_difference(numbers(g2), numbers(p2)))));
}

TEST_CASE("a pipeline of four stages gives what the stages give one after another") {
  const auto y = numbers(
      ts::jit<pipeline>(load_array<stage_weights>("s6_8_pipe_w.npy"), load_array<micro_batches>("s6_8_pipe_x.npy")));
  double sum = 0;
  for (const double v : y) sum += v;
  const auto last = y.size() - 32;
  const reference::json found = {{"row0[0:4]", {y[0], y[1], y[2], y[3]}},
                                 {"row63[0:4]", {y[last], y[last + 1], y[last + 2], y[last + 3]}},
                                 {"sum", sum}};
  CHECK(reference::check("pipeline_output", found));
  using program = ts::lowered<pipeline, stage_weights, micro_batches>;
  STATIC_REQUIRE(program::collectives().collective_permute == 11);
}
