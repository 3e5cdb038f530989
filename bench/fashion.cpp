// SPDX-License-Identifier: Apache-2.0
// Training steps of the Fashion-MNIST classifier on each mesh, and what a mesh of eight costs over one device.
#include "support.hpp"
#include "fashion/model.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

namespace {

using namespace fashion;

/// A step of one layout on random images, ready to be called.
template <class Layout>
std::function<void()> make_step() {
  using mesh = typename Layout::mesh;
  auto model = ts::init<classifier<Layout>, mesh>(ts::nn::rngs{.params = 0});
  const auto rate = ts::optim::warmup_cosine_decay_schedule(0, 2e-3, 234, 2340, 2e-5);
  auto optimizer = ts::nn::optimizer<ts::nn::param>(
      model, ts::optim::chain(ts::optim::clip_by_global_norm(1.0), ts::optim::adamw(rate, 0.9, 0.999, 1e-8, 1e-2)));
  std::vector<float> pixels_of_batch(static_cast<std::size_t>(batch * pixels));
  ts::random::fill_normal(std::span(pixels_of_batch), ts::random::make_key(1), 0);
  std::vector<std::int32_t> labels_of_batch(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < labels_of_batch.size(); ++i) labels_of_batch[i] = static_cast<std::int32_t>(i % 10);
  auto images = ts::device_put<ts::shape<batch, pixels>, typename Layout::rows, mesh>(pixels_of_batch);
  auto labels = ts::device_put<ts::shape<batch>, typename Layout::rows, mesh>(labels_of_batch);
  return [=]() mutable { ts::jit<train_step>(model, optimizer, images, labels); };
}

}  // namespace

int main() {
  const std::vector<bench::contender> steps{{one::name, make_step<one>()},
                                            {data8::name, make_step<data8>()},
                                            {data2_model4::name, make_step<data2_model4>()}};
  const bench::turns turns(steps, 15, 20);
  for (std::size_t i = 0; i < steps.size(); ++i)
    std::printf("fashion.step_us.%s=%.0f\n", steps[i].name.c_str(), turns.seconds(i) * 1e6);
  std::printf("mesh_overhead=%.3f\n", turns.ratio(1, 0));
  return 0;
}
