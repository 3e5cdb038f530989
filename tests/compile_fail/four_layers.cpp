// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: contracting dimensions are sharded and the result is ambiguous; say which you want with
//         out_sharding<P<...>>
// note: matmul of float32[32@data,256@model] and float32[256@model,64]
// lines: 20
// lines-clang: 28
#include <tessera/tessera.hpp>

#include "cure.hpp"

#include <vector>

namespace ts = tessera;
using ts::P, ts::none;
using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
struct mlp {
  ts::nn::linear<64, 256, ts::kernel<P<none, "model">>> first;
  ts::nn::linear<256, 64, ts::kernel<P<"model", none>>> second;
  ts::nn::linear<64, 256, ts::kernel<P<none, "model">>> third;
  ts::nn::linear<256, 64, ts::kernel<P<"model", none>>> fourth;
  TESSERA_MODULE(mlp, first, second, third, fourth)

  constexpr auto operator()(auto x) {
    auto h = ts::relu(first(x));
    auto g = second(h, ts::out_sharding<P<"data">>);
    auto k = ts::relu(third(g));
    return fourth(CURE((k), (k, ts::out_sharding<P<"data">>)));
  }
};
inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};
int main() {
  auto model = ts::init<mlp, cluster>(ts::nn::rngs{.params = 0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::sgd(1e-2));
  std::vector<float> host(32 * 64);
  auto x = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(host);
  auto y = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(host);
  return ts::jit<train_step>(model, optimizer, x, y).item() > 0;
}
