// SPDX-License-Identifier: Apache-2.0
// The trainer of one layout.
#pragma once

#include "model.hpp"
#include "trainer.hpp"

#include <memory>

namespace fashion {

template <class Layout>
trainer trainer_for(const settings& s, std::int64_t warmup, std::int64_t total) {
  using mesh = typename Layout::mesh;
  const auto rate = ts::optim::warmup_cosine_decay_schedule(0, s.peak_rate, warmup, total, s.peak_rate / 100);
  const auto update =
      ts::optim::chain(ts::optim::clip_by_global_norm(1.0), ts::optim::adamw(rate, 0.9, 0.999, 1e-8, s.weight_decay));
  auto model = std::make_shared<model_of<Layout>>(ts::init<classifier<Layout>, mesh>(ts::nn::rngs{.params = s.seed}));
  auto optimizer = ts::nn::optimizer<ts::nn::param>(*model, update);
  const auto put_images = [](const host_batch& host) {
    return ts::device_put<ts::shape<batch, pixels>, typename Layout::rows, mesh>(host.images);
  };
  return {[=](const host_batch& host) mutable {
            const auto labels = ts::device_put<ts::shape<batch>, typename Layout::rows, mesh>(host.labels);
            return static_cast<double>(ts::jit<train_step>(*model, optimizer, put_images(host), labels).item());
          },
          [=](const host_batch& host) { return ts::jit<predict_step>(*model, put_images(host)).to_vector(); }};
}

}  // namespace fashion
