// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: contracting dimensions are sharded and the result is ambiguous; say which you want with
//         out_sharding<P<...>>
// note: matmul of float32[32@data,256@model] and float32[256@model,64]
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/types.hpp>

#include <vector>

namespace ts = tessera;
using ts::P, ts::none;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

struct mlp {
  ts::nn::linear<64, 256, ts::kernel<P<none, "model">>> up;
  ts::nn::linear<256, 64, ts::kernel<P<"model", none>>> down;
  TESSERA_MODULE(mlp, up, down)

  constexpr auto operator()(auto x) {
    auto h = ts::relu(up(x));
    return down(CURE((h), (h, ts::out_sharding<P<"data">>)));
  }
};

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

auto made(const std::vector<float>& host_x, const std::vector<float>& host_y) {
  auto model = ts::init<mlp, cluster>(ts::nn::rngs{.params = 0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::sgd(1e-2));
  auto x = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(host_x);
  auto y = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(host_y);

  using step = ts::lowered<train_step, decltype(model), decltype(optimizer), decltype(x), decltype(y)>;
  static_assert(step::collectives().all_reduce == 2 && step::collectives().all_gather == 0);
  static_assert(step::memory_analysis().temp_size_in_bytes < 64 * ts::KiB);
  return std::tuple(model, optimizer, x, y);
}
