// SPDX-License-Identifier: Apache-2.0
// A tensor-parallel MLP written for one device: blocks of the weights, one sum of the program's own. It gives what the
// same MLP over whole arrays gives.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

/// What one device does with its blocks.
inline constexpr auto mlp_of_blocks = [](auto x, auto w1, auto w2) {
  static_assert(ts::type_text<decltype(x)>() == "float32[16,64]{V:data}");
  static_assert(ts::type_text<decltype(w1)>() == "float32[64,64]{V:model}");
  auto h = ts::relu(ts::matmul(x, w1));  // float32[16,64]{V:data,model}
  auto part = ts::matmul(h, w2);         // float32[16,64]{V:data,model}: a part of the sum
  return ts::psum<"model">(part);        // float32[16,64]{V:data}: one all-reduce
};

inline constexpr auto by_hand = [](auto x, auto w1, auto w2) {
  return ts::shard_map<ts::in_specs<P<"data">, P<none, "model">, P<"model">>, ts::out_specs<P<"data">>>(mlp_of_blocks)(
      x, w1, w2);
};

/// The same over whole arrays: the sum is part of the product.
inline constexpr auto by_types = [](auto x, auto w1, auto w2) {
  return ts::matmul(ts::relu(ts::matmul(x, w1)), w2, ts::out_sharding<P<"data">>);
};

std::vector<float> normal(std::size_t count, unsigned seed) {
  std::vector<float> numbers(count);
  ts::random::fill_normal(std::span(numbers), ts::random::make_key(seed), 0);
  return numbers;
}

int main() {
  const auto x = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(normal(32 * 64, 1));
  const auto w1 = ts::device_put<ts::shape<64, 256>, P<none, "model">, cluster>(normal(64 * 256, 2));
  const auto w2 = ts::device_put<ts::shape<256, 64>, P<"model">, cluster>(normal(256 * 64, 3));

  using manual = ts::lowered<by_hand, decltype(x), decltype(w1), decltype(w2)>;
  using typed = ts::lowered<by_types, decltype(x), decltype(w1), decltype(w2)>;
  static_assert(manual::collectives().all_reduce == 1 && manual::collectives().all_gather == 0);
  static_assert(typed::collectives().all_reduce == 1 && typed::collectives().all_gather == 0);

  const std::vector<float> a = ts::jit<by_hand>(x, w1, w2).to_vector();
  const std::vector<float> b = ts::jit<by_types>(x, w1, w2).to_vector();
  float apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) apart = std::max(apart, std::abs(a[i] - b[i]));
  std::printf("y[0] by hand %.6f, by types %.6f; largest difference %g\n", static_cast<double>(a[0]),
              static_cast<double>(b[0]), static_cast<double>(apart));
  return apart == 0 ? 0 : 1;
}
