// SPDX-License-Identifier: Apache-2.0
// The classifier of Fashion-MNIST and its steps; a layout says over which mesh they are cut and how.
#pragma once

#include "sizes.hpp"

#include <tessera/tessera.hpp>

namespace fashion {

namespace ts = tessera;
using ts::none, ts::P;

/// One device.
struct one {
  static constexpr const char* name = "one";
  using mesh = ts::mesh<>;
  using rows = P<>;
  using columns_first = P<>;
  using rows_second = P<>;
};

/// Eight devices, each with an eighth of the batch.
struct data8 {
  static constexpr const char* name = "data=8";
  using mesh = ts::mesh<ts::axis<"data", 8>>;
  using rows = P<"data">;
  using columns_first = P<>;
  using rows_second = P<>;
};

/// Two halves of the batch on four devices each, which share the first two layers: the first by columns, the second by
/// rows.
struct data2_model4 {
  static constexpr const char* name = "data=2,model=4";
  using mesh = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
  using rows = P<"data">;
  using columns_first = P<none, "model">;
  using rows_second = P<"model", none>;
};

/// 784-256-128-10 with relu between.
template <class Layout>
struct classifier {
  ts::nn::linear<pixels, 256, ts::kernel<typename Layout::columns_first>> first;
  ts::nn::linear<256, 128, ts::kernel<typename Layout::rows_second>> second;
  ts::nn::linear<128, classes> head;
  TESSERA_MODULE(classifier, first, second, head)

  /// float32[batch, 784] -> logits float32[batch, 10]
  constexpr auto operator()(auto images) {
    auto h = ts::relu(first(images));
    auto joined = ts::relu(second(h, ts::out_sharding<typename Layout::rows>));
    return head(joined);
  }
};

inline constexpr auto loss = [](auto& model, auto images, auto labels) {
  return ts::mean(ts::optim::softmax_cross_entropy_with_integer_labels(model(images), labels));
};

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto images, auto labels) {
  auto [l, grads] = ts::value_and_grad(loss)(model, images, labels);
  optimizer.update(model, grads);
  return l;
};

inline constexpr auto predict_step = [](auto& model, auto images) { return model(images); };

template <class Layout>
using images_of = ts::tensor<ts::f32, ts::shape<batch, pixels>, typename Layout::rows, typename Layout::mesh>;
template <class Layout>
using labels_of = ts::tensor<ts::i32, ts::shape<batch>, typename Layout::rows, typename Layout::mesh>;
template <class Layout>
using model_of = ts::nn::bound<classifier<Layout>, typename Layout::mesh>;

}  // namespace fashion
