// SPDX-License-Identifier: Apache-2.0
// Sums that wait: gradients of four microbatches are added on each device and meet the other devices once; two
// row-parallel products are added before the one all-reduce that both need.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P, ts::reduced, ts::unreduced;

using cluster = ts::mesh<ts::axis<"data", 4>, ts::axis<"model", 2>>;

using weight = ts::tensor<ts::f32, ts::shape<64, 16>, P<reduced<"data">>, cluster>;
using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto loss = [](auto w, auto x) { return ts::mean(ts::square(ts::matmul(x, w) - 1)); };

/// The weight is on every device, but reduced: a gradient of it is what this device has to add.
inline constexpr auto train_step = [](auto w, auto a, auto b, auto c, auto d) {
  auto [loss_a, grad_a] = ts::value_and_grad(loss)(w, a);
  auto [loss_b, grad_b] = ts::value_and_grad(loss)(w, b);
  auto [loss_c, grad_c] = ts::value_and_grad(loss)(w, c);
  auto [loss_d, grad_d] = ts::value_and_grad(loss)(w, d);
  auto grads = grad_a + grad_b + grad_c + grad_d;
  static_assert(ts::type_text<decltype(grads)>() == "float32[64,16]{U:data}");
  auto mean = ts::reshard<P<reduced<"data">>>(grads) / 4;
  return std::tuple(w - 0.1 * mean, (loss_a + loss_b + loss_c + loss_d) / 4);
};

/// x1 w1 + x2 w2, each a sum over devices along model: the sums are added before they are taken.
inline constexpr auto two_products = [](auto x1, auto w1, auto x2, auto w2) {
  auto sum = ts::matmul(x1, w1, ts::out_sharding<P<unreduced<"model">>>) +
             ts::matmul(x2, w2, ts::out_sharding<P<unreduced<"model">>>);
  static_assert(ts::type_text<decltype(sum)>() == "float32[32,16]{U:model}");
  return ts::reshard<P<>>(sum);
};

/// One all-reduce for the gradient and one for the losses, which are numbers.
using step = ts::lowered<train_step, weight, batch, batch, batch, batch>;
static_assert(step::collectives().all_reduce_bytes == 4 * (64 * 16 + 4));
static_assert(step::collectives().all_gather + step::collectives().reduce_scatter == 0);

using cut_columns = ts::tensor<ts::f32, ts::shape<32, 64>, P<none, "model">, cluster>;
using cut_rows = ts::tensor<ts::f32, ts::shape<64, 16>, P<"model">, cluster>;
using products = ts::lowered<two_products, cut_columns, cut_rows, cut_columns, cut_rows>;
static_assert(products::collectives().all_reduce == 1);

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::vector<float> drawn(count);
  ts::random::fill_normal(std::span(drawn), ts::random::make_key(seed), 0);
  return drawn;
}

template <class Tensor>
Tensor put(unsigned seed) {
  const auto count = static_cast<std::size_t>(Tensor::shape_type::size);
  return ts::device_put<typename Tensor::shape_type, typename Tensor::spec_type, cluster>(numbers(count, seed));
}

int main() {
  auto w = put<weight>(0);
  const auto a = put<batch>(1), b = put<batch>(2), c = put<batch>(3), d = put<batch>(4);
  float first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {
    auto [updated, l] = ts::jit<train_step>(w, a, b, c, d);
    w = updated;
    last = l.item();
    if (i == 0) first = last;
    std::printf("step %d: loss %.6f\n", i, static_cast<double>(last));
  }

  const auto x1 = put<cut_columns>(5), x2 = put<cut_columns>(6);
  const auto w1 = put<cut_rows>(7), w2 = put<cut_rows>(8);
  const std::vector<float> y = ts::jit<two_products>(x1, w1, x2, w2).to_vector();
  const std::vector<float> p = x1.to_vector(), q = w1.to_vector(), r = x2.to_vector(), s = w2.to_vector();
  double apart = 0;
  for (std::size_t i = 0; i < 32; ++i)
    for (std::size_t j = 0; j < 16; ++j) {
      double expected = 0;
      for (std::size_t k = 0; k < 64; ++k)
        expected += static_cast<double>(p[i * 64 + k]) * static_cast<double>(q[k * 16 + j]) +
                    static_cast<double>(r[i * 64 + k]) * static_cast<double>(s[k * 16 + j]);
      apart = std::max(apart, std::abs(expected - static_cast<double>(y[i * 16 + j])));
    }
  std::printf("two products: off by %.1e\n", apart);
  return last < first && apart < 1e-4 ? 0 : 1;
}
