// SPDX-License-Identifier: Apache-2.0
// Steps that go together over blocks of rows: attention, norms, losses and their gradients.
#include <tessera/runtime/evaluate.hpp>
#include <tessera/tessera.hpp>

#include "kernels/support.hpp"
#include "random_inputs.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace {

using kernel_test::on_threads;
namespace ts = tessera;
using ts::none, ts::P;
using ts::transform::grouping;
using bytes = std::vector<std::byte>;

using heads_mesh = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 2>>;
template <class Shape, ts::dtype D = ts::f32, class Spec = P<>, class Mesh = ts::mesh<>>
using array = ts::tensor<D, Shape, Spec, Mesh>;

/// Value and gradients as a result.
constexpr auto pair_of(auto made) {
  const auto& [value, gradients] = made;
  return std::pair(value, gradients);
}

// Value and gradients of each: attention, causal or with a mask, norms, losses.

template <class... Mask>
constexpr auto gradients_of_attention(auto q, auto k, auto v, auto u, Mask... mask) {
  return pair_of(ts::value_and_grad([&](auto qkv) {
    const auto& [a, b, c] = qkv;
    return ts::sum(ts::nn::dot_product_attention(a, b, c, mask...) * u);
  })(std::tuple(q, k, v)));
}
inline constexpr auto causal_step = [](auto q, auto k, auto v, auto u) {
  return gradients_of_attention(q, k, v, u, ts::nn::causal);
};
inline constexpr auto masked_step = [](auto q, auto k, auto v, auto u, auto mask) {
  return gradients_of_attention(q, k, v, u, mask);
};

constexpr auto layer_norm(auto x, auto gain) {
  const auto centred = x - ts::mean<-1>(x, ts::keepdims);
  return centred * ts::rsqrt(ts::mean<-1>(ts::square(centred), ts::keepdims) + 1e-5) * gain;
}
inline constexpr auto norm_step = [](auto x, auto gain, auto u) {
  return pair_of(ts::value_and_grad([&](auto xg) {
    const auto& [a, b] = xg;
    return ts::sum(layer_norm(a, b) * u);
  })(std::tuple(x, gain)));
};
inline constexpr auto rms_step = [](auto x, auto u) {
  return pair_of(ts::value_and_grad(
      [&](auto a) { return ts::sum(a * ts::rsqrt(ts::mean<-1>(ts::square(a), ts::keepdims) + 1e-6) * u); })(x));
};
inline constexpr auto loss_step = [](auto logits, auto labels) {
  return pair_of(
      ts::value_and_grad([&](auto z) { return ts::mean(ts::optim::softmax_cross_entropy(z, labels)); })(logits));
};

inline constexpr auto compiled_step = [](auto a, auto b, auto c, auto u, auto gain) {
  const auto normed = ts::reshape<2, 200, 4, 16>(layer_norm(ts::reshape<2, 200, 64>(a), gain));
  return gradients_of_attention(normed, b, c, u, ts::nn::causal);
};

inline constexpr auto squared_norm = [](auto x) { return ts::sum(ts::square(x)); };
inline constexpr auto squared_error = [](auto x, auto bias, auto t) {
  return ts::value_and_grad([&](auto a) { return ts::mean(ts::square(a + bias - t)); })(x).value;
};
inline constexpr auto largest = [](auto x) { return std::tuple(ts::max(ts::abs(x)), ts::max<1>(ts::exp(x) * x)); };

inline constexpr auto norm_and_largest = [](auto x, auto y) { return std::pair(squared_norm(x), ts::max(ts::abs(y))); };

/// Numbers between -2 and 2, or bools.
std::vector<bytes> inputs_of(const ts::graph::graph& g) { return runtime_test::random_inputs(g, 7, 2); }

std::span<float> floats(bytes& all) { return {reinterpret_cast<float*>(all.data()), all.size() / sizeof(float)}; }
std::span<const float> floats(const bytes& all) {
  return {reinterpret_cast<const float*>(all.data()), all.size() / sizeof(float)};
}

/// The bytes of temporaries of at least that size that a program keeps in memory.
std::int64_t in_memory(const ts::graph::program& p, std::int64_t size) {
  std::int64_t sum = 0;
  const ts::transform::lifetimes lives(p);
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (lives.born[b] >= 0 && p.buffers[b].bytes >= size && p.buffers[b].where != ts::graph::space::argument &&
        p.buffers[b].where != ts::graph::space::rows)
      sum += p.buffers[b].bytes;
  return sum;
}

/// Runs a step both ways; the results have the same bits, with fewer bytes in memory.
void check_same_bits(const ts::graph::graph& g, std::size_t groups, std::vector<bytes> inputs) {
  const ts::graph::program together = ts::transform::lower(g);
  CHECK(together.groups.size() == groups);
  const ts::graph::program alone = ts::transform::lower(g, grouping::none);
  CHECK(alone.groups.empty());
  CHECK(together.temporary_bytes < alone.temporary_bytes);
  const auto expected = ts::runtime::evaluate(g, inputs, grouping::none);
  CHECK((ts::runtime::evaluate(g, inputs) == expected));
  for (const int threads : {1, 4}) on_threads(threads, [&] { CHECK((ts::runtime::evaluate(g, inputs) == expected)); });
}
template <const auto& Step, class... Args>
void check_same_bits(std::size_t groups) {
  const auto g = ts::transform::traced<Step, Args...>::run();
  check_same_bits(g, groups, inputs_of(g));
}

template <std::int64_t B, std::int64_t T, std::int64_t H, std::int64_t D>
using heads = array<ts::shape<B, T, H, D>>;

}  // namespace

TEST_CASE("attention and its gradients have the bits of steps that go alone") {
  check_same_bits<causal_step, heads<2, 130, 4, 16>, heads<2, 130, 4, 16>, heads<2, 130, 4, 16>, heads<2, 130, 4, 16>>(
      2);
  check_same_bits<masked_step, heads<1, 96, 5, 8>, heads<1, 200, 5, 8>, heads<1, 200, 5, 8>, heads<1, 96, 5, 8>,
                  array<ts::shape<5, 96, 200>, ts::bool_>>(2);
}

TEST_CASE("Depths that a product sums in several parts, and float64, have the bits of steps that go alone") {
  using long_heads = heads<1, 300, 4, 8>;
  check_same_bits<causal_step, long_heads, long_heads, long_heads, long_heads>(2);
  using doubles = array<ts::shape<2, 64, 2, 8>, ts::f64>;
  check_same_bits<causal_step, doubles, doubles, doubles, doubles>(2);
}

TEST_CASE("What one head of attention makes of another's length is in memory nowhere, if it is large") {
  using q = heads<1, 512, 4, 8>;
  const auto g = ts::transform::traced<causal_step, q, q, q, q>::run();
  constexpr std::int64_t scores = 4 * 512 * 512 * 4;
  CHECK(in_memory(ts::transform::lower(g, grouping::none), scores) >= 5 * scores);
  CHECK(in_memory(ts::transform::lower(g), scores) == 0);
  check_same_bits(g, 2, inputs_of(g));
}

TEST_CASE("norms and losses with their gradients have the bits of steps that go alone") {
  check_same_bits<norm_step, array<ts::shape<3, 100, 96>>, array<ts::shape<96>>, array<ts::shape<3, 100, 96>>>(1);
  check_same_bits<rms_step, array<ts::shape<300, 111>>, array<ts::shape<300, 111>>>(1);
  check_same_bits<loss_step, array<ts::shape<250, 203>>, array<ts::shape<250, 203>>>(1);
}

TEST_CASE("Rows of -inf, and NaN, are what they are in steps that go alone") {
  using q = heads<1, 96, 5, 8>;
  using k = heads<1, 200, 5, 8>;
  const auto g = ts::transform::traced<masked_step, q, k, k, q, array<ts::shape<5, 96, 200>, ts::bool_>>::run();
  auto inputs = inputs_of(g);
  auto* mask = reinterpret_cast<bool*>(inputs[4].data());
  for (int row : {0, 41, 95}) std::fill_n(mask + row * 200, 200, false);
  check_same_bits(g, 2, inputs);
  auto found = ts::runtime::evaluate(g, inputs);
  for (const float x : floats(found[1])) CHECK(!std::isnan(x));
  floats(inputs[0])[5 * 8 * 7] = std::numeric_limits<float>::quiet_NaN();
  floats(inputs[2])[5 * 8 * 9 + 3] = std::numeric_limits<float>::infinity();
  check_same_bits(g, 2, inputs);
}

TEST_CASE("Columns that a mask shows to all rows of a block, other ones in each head, are as if masked one by one") {
  using q = heads<1, 96, 5, 8>;
  using k = heads<1, 200, 5, 8>;
  const auto g = ts::transform::traced<masked_step, q, k, k, q, array<ts::shape<5, 96, 200>, ts::bool_>>::run();
  auto inputs = inputs_of(g);
  auto* mask = reinterpret_cast<bool*>(inputs[4].data());
  for (int head = 0; head < 5; ++head)
    for (int row = 0; row < 96; ++row)
      for (int column = 0; column < 200; ++column) *mask++ = column < 33 * head + row || head == 3;
  check_same_bits(g, 2, inputs);
}

TEST_CASE("Rows of a mesh's blocks go together on each device") {
  using one_device = heads<4, 128, 8, 8>;
  using cut = array<ts::shape<4, 128, 8, 8>, ts::f32, P<"data", none, "model">, heads_mesh>;
  const auto g = ts::transform::traced<causal_step, cut, cut, cut, cut>::run();
  const auto inputs = inputs_of(g);
  check_same_bits(g, 2, inputs);
  const auto whole = ts::transform::traced<causal_step, one_device, one_device, one_device, one_device>::run();
  const auto expected = ts::runtime::evaluate(whole, inputs);
  const auto found = ts::runtime::evaluate(g, inputs);
  for (std::size_t i = 1; i < expected.size(); ++i) CHECK(found[i] == expected[i]);
}

TEST_CASE("Compiled kernels give a block of rows the bits of all rows at once") {
  using q = heads<2, 200, 4, 16>;
  const auto g = ts::transform::traced<compiled_step, q, q, q, q, array<ts::shape<64>>>::run();
  CHECK(ts::transform::lower(g).groups.size() == 3);
  const auto inputs = inputs_of(g);
  const auto expected = ts::runtime::evaluate(g, inputs, grouping::none);
  const auto put = [&]<class Shape>(std::size_t i, Shape) {
    return ts::device_put<Shape, P<>, ts::mesh<>>(
        std::span(reinterpret_cast<const float*>(inputs[i].data()), inputs[i].size() / sizeof(float)));
  };
  constexpr ts::shape<2, 200, 4, 16> all{};
  const auto [value, grads] =
      ts::jit<compiled_step>(put(0, all), put(1, all), put(2, all), put(3, all), put(4, ts::shape<64>{}));
  CHECK(value.item() == floats(expected[0])[0]);
  const auto same = [](const auto& tensor, bytes wanted) {
    const std::vector<float> found = tensor.to_vector();
    return std::memcmp(found.data(), wanted.data(), wanted.size()) == 0;
  };
  CHECK(same(std::get<0>(grads), expected[1]));
  CHECK(same(std::get<1>(grads), expected[2]));
  CHECK(same(std::get<2>(grads), expected[3]));
}

TEST_CASE("Long lines are reduced as their elements are made, with the bits of lines in memory") {
  check_same_bits<squared_norm, array<ts::shape<70001>>>(1);
  check_same_bits<squared_norm, array<ts::shape<300, 150>, ts::f64>>(1);
  check_same_bits<squared_norm, array<ts::shape<3, 257, 129>>>(1);
  check_same_bits<squared_error, array<ts::shape<200, 257>>, array<ts::shape<257>>, array<ts::shape<200, 257>>>(1);
  check_same_bits<largest, array<ts::shape<3, 40000>>>(1);
}

TEST_CASE("Compiled kernels reduce long lines in registers, with the bits of lines in memory") {
  const auto g = ts::transform::traced<norm_and_largest, array<ts::shape<70001>>, array<ts::shape<3, 40000>>>::run();
  CHECK(ts::transform::lower(g).groups.size() == 2);
  const auto inputs = inputs_of(g);
  const auto expected = ts::runtime::evaluate(g, inputs, grouping::none);
  const auto x = ts::device_put<ts::shape<70001>, P<>, ts::mesh<>>(floats(inputs[0]));
  const auto y = ts::device_put<ts::shape<3, 40000>, P<>, ts::mesh<>>(floats(inputs[1]));
  for (const int threads : {1, 4})
    on_threads(threads, [&] {
      const auto [norm, most] = ts::jit<norm_and_largest>(x, y);
      CHECK(norm.item() == floats(expected[0])[0]);
      CHECK(most.item() == floats(expected[1])[0]);
    });
}
