// SPDX-License-Identifier: Apache-2.0
// The trainer of one layout.
#pragma once

#include "model.hpp"
#include "trainer.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace fashion {

template <class Layout, class Optimizer>
class trainer_of : public trainer {
 public:
  trainer_of(model_of<Layout> model, Optimizer optimizer)
      : model_(std::move(model)), optimizer_(std::move(optimizer)) {}

  double step(const host_batch& host) override {
    const auto labels = ts::device_put<ts::shape<batch>, typename Layout::rows, typename Layout::mesh>(host.labels);
    return static_cast<double>(ts::jit<train_step>(model_, optimizer_, images(host), labels).item());
  }
  std::vector<float> logits(const host_batch& host) override {
    return ts::jit<predict_step>(model_, images(host)).to_vector();
  }

 private:
  static auto images(const host_batch& host) {
    return ts::device_put<ts::shape<batch, pixels>, typename Layout::rows, typename Layout::mesh>(host.images);
  }

  model_of<Layout> model_;
  Optimizer optimizer_;
};

template <class Layout>
std::unique_ptr<trainer> trainer_for(const settings& s, std::int64_t warmup, std::int64_t total) {
  const auto rate = ts::optim::warmup_cosine_decay_schedule(0, s.peak_rate, warmup, total, s.peak_rate / 100);
  const auto update =
      ts::optim::chain(ts::optim::clip_by_global_norm(1.0), ts::optim::adamw(rate, 0.9, 0.999, 1e-8, s.weight_decay));
  auto model = ts::init<classifier<Layout>, typename Layout::mesh>(ts::nn::rngs{.params = s.seed});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, update);
  return std::make_unique<trainer_of<Layout, decltype(optimizer)>>(std::move(model), std::move(optimizer));
}

}  // namespace fashion
