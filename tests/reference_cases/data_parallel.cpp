// SPDX-License-Identifier: Apache-2.0
// Section 6.4: an MLP trained by eight devices, each with an eighth of the batch, is the one that one device trains.
#include "support.hpp"

#include <catch2/catch.hpp>

namespace {

using namespace cases;

struct mlp {
  ts::nn::linear<784, 32> hidden;
  ts::nn::linear<32, 10> head;
  TESSERA_MODULE(mlp, hidden, head)

  constexpr auto operator()(auto images) { return head(ts::relu(hidden(images))); }
};

}  // namespace

namespace data_parallel {

inline constexpr auto loss = [](auto& model, auto images, auto labels) {
  return ts::mean(ts::optim::softmax_cross_entropy_with_integer_labels(model(images), labels));
};

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto images, auto labels) {
  auto [l, grads] = ts::value_and_grad(loss)(model, images, labels);
  optimizer.update(model, grads);
  return l;
};

}  // namespace data_parallel

namespace {

/// The training of one run on a mesh whose axis, if any, cuts the batch.
template <class Mesh, class Batch>
struct run {
  using images_type = ts::tensor<ts::f32, ts::shape<64, 784>, Batch, Mesh>;
  using labels_type = ts::tensor<ts::i32, ts::shape<64>, Batch, Mesh>;

  ts::nn::bound<mlp, Mesh> model = ts::init<mlp, Mesh>(ts::nn::rngs{0});
  decltype(ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-3))) optimizer =
      ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-3));
  images_type images = ts::device_put<ts::shape<64, 784>, Batch, Mesh>(reference::load_npy<float>("s6_4_images.npy"));
  labels_type labels = ts::device_put<ts::shape<64>, Batch, Mesh>(reference::load_npy<std::int32_t>("s6_4_labels.npy"));

  using step = ts::lowered<data_parallel::train_step, decltype(model), decltype(optimizer), images_type, labels_type>;

  std::vector<double> losses(int steps) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i)
      all.push_back(ts::jit<data_parallel::train_step>(model, optimizer, images, labels).item());
    return all;
  }
  reference::json parameters() const {
    return {{"k1", norm_and_sum(model.hidden.kernel)},
            {"b1", norm_and_sum(model.hidden.bias)},
            {"k2", norm_and_sum(model.head.kernel)},
            {"b2", norm_and_sum(model.head.bias)}};
  }
};

using one = run<ts::mesh<>, P<>>;
using data8 = run<ts::mesh<ts::axis<"data", 8>>, P<"data">>;

static_assert(only(one::step::collectives(), 0, 0, 0));
static_assert(only(data8::step::collectives(), 1, 0, 0));

using split_kernel = ts::tensor<ts::f32, ts::shape<64, 256>, P<none, "model">, ts::mesh<ts::axis<"model", 4>>>;
constexpr std::int64_t split_kernel_device_bytes =
    ts::local_block(split_kernel::type, split_kernel::mesh_type::value).bytes();
static_assert(split_kernel::type.bytes() == 64 * ts::KiB && split_kernel_device_bytes == 16 * ts::KiB);

}  // namespace

TEST_CASE("one device and eight give the reference's losses and parameters, and the same parameters") {
  one alone;
  data8 together;
  CHECK(reference::check("dp_losses", alone.losses(3)));
  CHECK(reference::check("dp_losses", together.losses(3)));
  CHECK(reference::check("dp_params_after_3", alone.parameters()));
  CHECK(reference::check("dp_params_after_3", together.parameters()));
  CHECK(
      reference::check("dp_vs_single_param_diff", largest_difference(elements(alone.model), elements(together.model))));
}

TEST_CASE("a data-parallel step sums gradients and loss in one all-reduce") {
  CHECK(reference::check("dp_collectives_per_step", collectives<data8::step>()));
  // Every gradient and the loss, once.
  CHECK(data8::step::collectives().all_reduce_bytes == 4 * (784 * 32 + 32 + 32 * 10 + 10 + 1));
}

TEST_CASE("a kernel split four ways takes a quarter of its bytes on each device") {
  CHECK(reference::check("up_kernel_bytes_global_and_device",
                         std::vector<std::int64_t>{split_kernel::type.bytes(), split_kernel_device_bytes}));
  // What is counted is what is stored: four blocks of that size.
  const auto put =
      ts::device_put<ts::shape<64, 256>, P<none, "model">, split_kernel::mesh_type>(std::vector<float>(64 * 256));
  CHECK(put.data()->shards == 4);
  CHECK(put.data()->block_bytes == split_kernel_device_bytes);
}
