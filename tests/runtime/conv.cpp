// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools: values, gradients, any mesh, and what they move.
#include "runtime/differences.hpp"
#include "runtime/mesh_independence.hpp"
#include "runtime/window_cases.hpp"

#include <tessera/analysis/summary.hpp>

using namespace runtime_test;
using numbers = std::vector<double>;

namespace {

/// What options mean along one dimension.
struct slide {
  std::int64_t in, window, stride, dilation, low, out;
};

slide slide_of(std::int64_t in, std::int64_t window, std::int64_t stride, std::int64_t dilation, bool same_padding) {
  const std::int64_t span = (window - 1) * dilation + 1;
  if (!same_padding) return {in, window, stride, dilation, 0, (in - span) / stride + 1};
  const std::int64_t out = (in + stride - 1) / stride;
  const std::int64_t padded = std::max<std::int64_t>(0, (out - 1) * stride + span - in);
  return {in, window, stride, dilation, padded / 2, out};
}

/// Calls f(position in the array or -1, position in the window) for every element of a window.
template <class F>
void for_each_in_window(const slide& h, const slide& w, std::int64_t i, std::int64_t j, F f) {
  for (std::int64_t k = 0; k < h.window; ++k)
    for (std::int64_t l = 0; l < w.window; ++l) {
      const std::int64_t y = i * h.stride + k * h.dilation - h.low;
      const std::int64_t x = j * w.stride + l * w.dilation - w.low;
      f(y >= 0 && y < h.in && x >= 0 && x < w.in ? y * w.in + x : -1, k * w.window + l);
    }
}

template <class F>
numbers computed(std::vector<aval> types, const std::vector<numbers>& elements, F f) {
  graph::graph g;
  std::vector<bytes> inputs;
  for (std::size_t i = 0; i < types.size(); ++i) inputs.push_back(to_bytes(elements[i], types[i].type));
  const value y = f(add_inputs(g, types));
  g.outputs.push_back({y.id, -1});
  return to_numbers(runtime::evaluate(g, inputs)[0], y.type().type);
}

/// x (2, H, W, 3), kernel (K, L, 3, 4) against the sum that defines a convolution.
template <std::int64_t H, std::int64_t W, std::int64_t K, std::int64_t L, std::int64_t S, std::int64_t D, class Padding>
void check_conv() {
  std::mt19937 bits(5);
  const numbers x = draw({{}, -9, 9, true}, 2 * H * W * 3, bits);
  const numbers kernel = draw({{}, -9, 9, true}, K * L * 3 * 4, bits);
  const bool padded = std::is_same_v<Padding, same_t>;
  const slide h = slide_of(H, K, S, D, padded);
  const slide w = slide_of(W, L, S + 1, D, padded);
  numbers expected;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t i = 0; i < h.out; ++i)
      for (std::int64_t j = 0; j < w.out; ++j)
        for (std::int64_t o = 0; o < 4; ++o) {
          double sum = 0;
          for_each_in_window(h, w, i, j, [&](std::int64_t at, std::int64_t within) {
            for (std::int64_t c = 0; c < 3 && at >= 0; ++c)
              sum += x[static_cast<std::size_t>((n * H * W + at) * 3 + c)] *
                     kernel[static_cast<std::size_t>((within * 3 + c) * 4 + o)];
          });
          expected.push_back(sum);
        }
  INFO(H << "x" << W << " by " << K << "x" << L << ", strides " << S << ", dilation " << D);
  CHECK(computed({array_type(dtype::f32, {2, H, W, 3}), array_type(dtype::f32, {K, L, 3, 4})}, {x, kernel},
                 [](const std::vector<value>& v) {
                   return write_conv_of<Padding, strides_t<S, S + 1>, dilation_t<D, D>>(v, nullptr);
                 }) == expected);
}

template <bool Mean, std::int64_t K, std::int64_t S, class Padding>
void check_pool() {
  std::mt19937 bits(6);
  const numbers x = draw({{}, -9, -1, true}, 2 * 7 * 6 * 3, bits);
  const bool padded = std::is_same_v<Padding, same_t>;
  const slide h = slide_of(7, K, S, 1, padded);
  const slide w = slide_of(6, 2, 1, 1, padded);
  numbers expected;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t i = 0; i < h.out; ++i)
      for (std::int64_t j = 0; j < w.out; ++j)
        for (std::int64_t c = 0; c < 3; ++c) {
          double sum = 0;
          double largest = -100;
          for_each_in_window(h, w, i, j, [&](std::int64_t at, std::int64_t) {
            if (at < 0) return;
            sum += x[static_cast<std::size_t>((n * 42 + at) * 3 + c)];
            largest = std::max(largest, x[static_cast<std::size_t>((n * 42 + at) * 3 + c)]);
          });
          expected.push_back(Mean ? sum / static_cast<double>(2 * K) : largest);
        }
  CHECK(computed({array_type(dtype::f64, {2, 7, 6, 3})}, {x}, [](const std::vector<value>& v) {
          return write_pool_of<Mean, shape<K, 2>, Padding, strides_t<S, 1>>(v, nullptr);
        }) == expected);
}

}  // namespace

TEST_CASE("a convolution is the sum over its windows") {
  check_conv<5, 6, 3, 2, 1, 1, same_t>();
  check_conv<5, 6, 3, 2, 2, 1, same_t>();
  check_conv<7, 9, 3, 2, 2, 2, valid_t>();
  check_conv<8, 8, 4, 4, 3, 1, same_t>();
  check_conv<4, 5, 1, 1, 1, 1, valid_t>();
  check_conv<6, 7, 2, 3, 1, 3, same_t>();
}

TEST_CASE("a convolution in groups is one of each group") {
  const std::vector<aval> types{array_type(dtype::f64, {2, 5, 6, 6}), array_type(dtype::f64, {3, 2, 2, 9})};
  std::mt19937 bits(8);
  std::vector<numbers> elements;
  for (const aval& type : types) elements.push_back(draw({{}, -9, 9, true}, type.size(), bits));
  const auto part = [](value v, int d, std::int64_t start, std::int64_t count) {
    sharding::slices taken = sharding::everything(v.type());
    taken.of[d] = {start, count, 1};
    return graph::slice(v, taken);
  };
  const numbers expected = computed(types, elements, [&](const std::vector<value>& v) {
    std::vector<value> groups;
    for (std::int64_t g = 0; g < 3; ++g) {
      const value of[] = {part(v[0], 3, 2 * g, 2), part(v[1], 3, 3 * g, 3)};
      groups.push_back(write_conv_of<strides_t<2, 1>>(of, nullptr));
    }
    return graph::concatenate(groups, 3);
  });
  CHECK(computed(types, elements, [](const std::vector<value>& v) {
          return write_conv_of<feature_group_count_t<3>, strides_t<2, 1>>(v, nullptr);
        }) == expected);
}

TEST_CASE("a pool is the largest element or the mean of each window") {
  check_pool<false, 2, 2, valid_t>();
  check_pool<false, 3, 2, same_t>();
  check_pool<true, 2, 1, valid_t>();
  check_pool<true, 3, 3, same_t>();
}

TEST_CASE("gradients of convolutions and pools agree with differences") { check_all(window_cases(2)); }

TEST_CASE("convolutions and pools give the one-device answer on every mesh") { check_meshes(window_cases(8), 40); }

TEST_CASE("windows within blocks move nothing, windows over their ends cost one all-gather") {
  const mesh_value mesh = grid(4, 2);
  aval type = array_type(dtype::f32, {16, 128, 8});
  type.dims[0].axes = axis_append(0, 0);
  type.dims[1].axes = axis_append(0, 1);
  const auto moved = [&](auto build) {
    graph::graph g;
    g.mesh = mesh;
    const value x{&g, g.add_parameter(type)};
    const value kernel{&g, g.add_parameter(array_type(dtype::f32, {5, 8, 10}))};
    g.outputs.push_back({build(std::array{x, kernel}).id, -1});
    return analysis::summarise(transform::lower(g), mesh).collectives;
  };
  const auto pooled =
      moved([](std::array<value, 2> v) { return write_pool_of<false, shape<2>, same_t, strides_t<2>>(v, nullptr); });
  CHECK(pooled.all_gather + pooled.all_reduce + pooled.all_to_all + pooled.reduce_scatter == 0);
  const auto convolved = moved([](std::array<value, 2> v) { return write_conv_of<>(v, nullptr); });
  CHECK(convolved.all_gather == 1);
  CHECK(convolved.all_reduce == 0);
}
