// SPDX-License-Identifier: Apache-2.0
// Fully sharded data parallelism written for one device: each holds an eighth of the weights and of the batch, gathers
// the weights where it needs them, and gets back its eighth of their gradients, summed over all.
#include <tessera/tessera.hpp>

#include <cstdio>
#include <tuple>
#include <vector>

namespace ts = tessera;
using ts::P;

using cluster = ts::mesh<ts::axis<"fsdp", 8>>;

struct mlp {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<64, 256>, P<"fsdp">, ts::nn::initializers::normal(0.1)> w1;
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<256, 64>, P<"fsdp">, ts::nn::initializers::normal(0.1)> w2;
  TESSERA_MODULE(mlp, w1, w2)
};

/// What one device does. The mean over its rows is not the loss; pmean makes it one, and the same on all devices.
inline constexpr auto local_loss = [](auto w1_block, auto w2_block, auto x, auto y) {
  static_assert(ts::type_text<decltype(w1_block)>() == "float32[8,256]{V:fsdp}");
  auto w1 = ts::all_gather<"fsdp">(w1_block, ts::tiled);  // float32[64,256]{V:fsdp}
  auto w2 = ts::all_gather<"fsdp">(w2_block, ts::tiled);  // float32[256,64]{V:fsdp}
  auto error = ts::matmul(ts::relu(ts::matmul(x, w1)), w2) - y;
  return ts::pmean<"fsdp">(ts::mean(ts::square(error)));
};

inline constexpr auto loss = [](auto& model, auto x, auto y) {
  return ts::shard_map<ts::in_specs<P<"fsdp">, P<"fsdp">, P<"fsdp">, P<"fsdp">>, ts::out_specs<P<>>>(local_loss)(
      model.w1, model.w2, x, y);
};

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

std::vector<float> normal(std::size_t count, unsigned seed) {
  std::vector<float> numbers(count);
  ts::random::fill_normal(std::span(numbers), ts::random::make_key(seed), 0);
  return numbers;
}

int main() {
  auto model = ts::init<mlp, cluster>(ts::nn::rngs{.params = 0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::sgd(0.1));
  const auto x = ts::device_put<ts::shape<64, 64>, P<"fsdp">, cluster>(normal(64 * 64, 1));
  const auto y = ts::device_put<ts::shape<64, 64>, P<"fsdp">, cluster>(normal(64 * 64, 2));

  using step = ts::lowered<train_step, decltype(model), decltype(optimizer), decltype(x), decltype(y)>;
  static_assert(step::collectives().all_gather == 2);      // the weights
  static_assert(step::collectives().reduce_scatter == 2);  // their gradients
  static_assert(step::collectives().all_reduce == 1);      // the loss, four bytes
  static_assert(step::collectives().all_reduce_bytes == 4);

  double first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {
    last = static_cast<double>(ts::jit<train_step>(model, optimizer, x, y).item());
    if (i == 0) first = last;
    std::printf("step %d: loss %.6f\n", i, last);
  }
  return last < first ? 0 : 1;
}
