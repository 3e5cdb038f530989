// SPDX-License-Identifier: Apache-2.0
// The first program: a sharded two-layer model learns, and what its step costs is checked while it compiles.
#include <tessera/tessera.hpp>

#include <cstdio>
#include <vector>

namespace ts = tessera;
using ts::P, ts::none;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

struct mlp {
  ts::nn::linear<64, 256, ts::kernel<P<none, "model">>> up;
  ts::nn::linear<256, 64, ts::kernel<P<"model", none>>> down;
  TESSERA_MODULE(mlp, up, down)

  constexpr auto operator()(auto x) {
    auto h = ts::relu(up(x));                     // float32[32@data,256@model]: no communication
    return down(h, ts::out_sharding<P<"data">>);  // float32[32@data,64]: one all-reduce
  }
};

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

int main() {
  std::vector<float> host_x(32 * 64);
  ts::random::fill_normal(std::span(host_x), ts::random::make_key(1), 0);
  std::vector<float> host_y(32 * 64);
  for (std::size_t i = 0; i < host_y.size(); ++i) host_y[i] = 0.5F * host_x[i];

  auto model = ts::init<mlp, cluster>(ts::nn::rngs{.params = 0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-2));
  auto x = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(host_x);
  auto y = ts::device_put<ts::shape<32, 64>, P<"data">, cluster>(host_y);

  using step = ts::lowered<train_step, decltype(model), decltype(optimizer), decltype(x), decltype(y)>;
  static_assert(step::collectives().all_reduce == 2 && step::collectives().all_gather == 0);
  static_assert(step::memory_analysis().temp_size_in_bytes < 64 * ts::KiB);

  for (int i = 0; i < 5; ++i) {
    const auto l = ts::jit<train_step>(model, optimizer, x, y);
    std::printf("%.6f\n", static_cast<double>(l.item()));
  }
}
