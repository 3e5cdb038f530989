// SPDX-License-Identifier: Apache-2.0
// Steps as users write them: what is known of their programs while they compile.
#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/losses.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/types.hpp>

#include <catch2/catch.hpp>

#include <string>

namespace ts = tessera;
using ts::none, ts::P, ts::shape;

template <class Model, class Mesh>
using adam_of =
    decltype(ts::nn::optimizer<ts::nn::param>(std::declval<ts::nn::bound<Model, Mesh>>(), ts::optim::adam(1e-3)));

constexpr bool moves(const ts::analysis::collective_counts& c, int all_reduce, int all_gather, int reduce_scatter) {
  return c.all_reduce == all_reduce && c.all_gather == all_gather && c.reduce_scatter == reduce_scatter &&
         c.all_to_all == 0 && c.collective_permute == 0;
}

/// Adam's numbers: a count, two decays and what they leave, epsilon, the rate; 4 bytes each.
constexpr std::int64_t adam_scalars = 7 * 4;

namespace data_parallel {

using devices = ts::mesh<ts::axis<"data", 8>>;

struct classifier {
  ts::nn::linear<784, 32> up;
  ts::nn::linear<32, 10> down;
  TESSERA_MODULE(classifier, up, down)
  constexpr auto operator()(auto x) const { return down(ts::relu(up(x))); }
};

inline constexpr auto loss = [](auto& model, auto x, auto y) {
  return ts::mean(ts::optim::softmax_cross_entropy_with_integer_labels(model(x), y));
};
inline constexpr auto step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, gradients] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, gradients);
  return l;
};

using lowered = ts::lowered<step, ts::nn::bound<classifier, devices>, adam_of<classifier, devices>,
                            ts::tensor<ts::f32, shape<64, 784>, P<"data">, devices>,
                            ts::tensor<ts::i32, shape<64>, P<"data">, devices>>;

constexpr std::int64_t parameter_bytes = 4 * (784 * 32 + 32 + 32 * 10 + 10);

}  // namespace data_parallel

TEST_CASE("A data-parallel Adam step moves gradients and loss in one all-reduce") {
  using data_parallel::lowered, data_parallel::parameter_bytes;
  STATIC_REQUIRE(moves(lowered::collectives(), 1, 0, 0));
  STATIC_REQUIRE(lowered::collectives().all_reduce_bytes == parameter_bytes + 4);
}

TEST_CASE("Arguments, results and what is replaced in place are counted in bytes of a device") {
  using data_parallel::lowered, data_parallel::parameter_bytes;
  constexpr auto memory = lowered::memory_analysis();
  STATIC_REQUIRE(memory.argument_size_in_bytes == 3 * parameter_bytes + adam_scalars + 8 * 784 * 4 + 8 * 4);
  STATIC_REQUIRE(memory.alias_size_in_bytes == 3 * parameter_bytes + 4);  // model, moments, count
  STATIC_REQUIRE(memory.output_size_in_bytes == memory.alias_size_in_bytes + 4);
}

TEST_CASE("The check of labels comes before anything is written, and the program prints as it runs") {
  const std::string text(data_parallel::lowered::text());
  CHECK(text.find("arg0 float32[784,32]\n") != text.npos);
  CHECK(text.find("float32[64@data,784]\n") != text.npos);
  CHECK(text.find("int32[64@data]\n") != text.npos);
  CHECK(text.find(" over data\n") != text.npos);
  CHECK(text.find("result0 float32[]\n") != text.npos);
  CHECK(text.find("in place of arg0\n") != text.npos);
  CHECK(text.find("temp " + std::to_string(data_parallel::lowered::memory_analysis().temp_size_in_bytes)) != text.npos);
  const std::size_t check = text.find("check_range");
  REQUIRE(check != text.npos);
  for (std::size_t line = 0, end = 0; line < check; line = end + 1) {
    end = text.find('\n', line);
    CHECK(text.substr(line, end - line).find("  arg") != 0);
  }
}

namespace tensor_parallel {

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

struct mlp {
  ts::nn::variable<ts::nn::param, ts::f32, shape<64, 256>, P<none, "model">> w1;
  ts::nn::variable<ts::nn::param, ts::f32, shape<256, 64>, P<"model">> w2;
  TESSERA_MODULE(mlp, w1, w2)
  constexpr auto operator()(auto x) const {
    return ts::matmul(ts::relu(ts::matmul(x, w1)), w2, ts::out_sharding<P<"data">>);
  }
};

inline constexpr auto forward = [](auto& model, auto x) { return model(x); };
inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, gradients] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, gradients);
  return l;
};

using batch = ts::tensor<ts::f32, shape<32, 64>, P<"data">, cluster>;
using model = ts::nn::bound<mlp, cluster>;
using lowered_forward = ts::lowered<forward, const model, batch>;
using lowered_step = ts::lowered<step, model, adam_of<mlp, cluster>, batch, batch>;

}  // namespace tensor_parallel

TEST_CASE("A column- then row-parallel MLP has one all-reduce forward, and two in an Adam step") {
  using namespace tensor_parallel;
  STATIC_REQUIRE(moves(lowered_forward::collectives(), 1, 0, 0));
  STATIC_REQUIRE(lowered_forward::collectives().all_reduce_bytes == 16 * 64 * 4);
  STATIC_REQUIRE(moves(lowered_step::collectives(), 2, 0, 0));
}

TEST_CASE("A product costs 2 m n k operations on each device") {
  using namespace tensor_parallel;
  constexpr std::int64_t products = 2 * 16 * 64 * 64 + 2 * 16 * 64 * 64;
  STATIC_REQUIRE(lowered_forward::cost_analysis().flops == products + 16 * 64);  // and relu
  STATIC_REQUIRE(lowered_forward::cost_analysis().transcendentals == 0);
  STATIC_REQUIRE(lowered_forward::memory_analysis().argument_size_in_bytes == 4 * (64 * 64 + 64 * 64 + 16 * 64));
  STATIC_REQUIRE(lowered_forward::memory_analysis().output_size_in_bytes == 4 * 16 * 64);
  STATIC_REQUIRE(lowered_forward::memory_analysis().alias_size_in_bytes == 0);
}

namespace fully_sharded {

using devices = ts::mesh<ts::axis<"fsdp", 8>>;

struct mlp {
  ts::nn::variable<ts::nn::param, ts::f32, shape<64, 256>, P<"fsdp">> w1;
  ts::nn::variable<ts::nn::param, ts::f32, shape<256, 64>, P<"fsdp">> w2;
  TESSERA_MODULE(mlp, w1, w2)
  constexpr auto operator()(auto x) const {
    return ts::matmul(ts::relu(ts::matmul(x, ts::reshard<P<>>(w1))), ts::reshard<P<>>(w2));
  }
};

using batch = ts::tensor<ts::f32, shape<64, 64>, P<"fsdp">, devices>;
using lowered = ts::lowered<tensor_parallel::step, ts::nn::bound<mlp, devices>, adam_of<mlp, devices>, batch, batch>;

}  // namespace fully_sharded

TEST_CASE("An FSDP step by reshard gathers each weight once, scatters each gradient once, and reduces the loss") {
  using fully_sharded::lowered;
  constexpr auto moved = lowered::collectives();
  STATIC_REQUIRE(moves(moved, 1, 2, 2));
  STATIC_REQUIRE(moved.all_gather_bytes == 2 * 8 * 256 * 4 && moved.reduce_scatter_bytes == 2 * 64 * 256 * 4);
  STATIC_REQUIRE(moved.all_reduce_bytes == 4);
  // Parameters and both moments: 48 KiB on each of 8 devices.
  STATIC_REQUIRE(lowered::memory_analysis().argument_size_in_bytes == 48 * ts::KiB + adam_scalars + 2 * 8 * 64 * 4);
}

template <class Lowered>
constexpr bool summed_from_its_steps() {
  const ts::graph::program p = Lowered::program();
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t bytes = 0;
  std::int64_t collective_bytes = 0;
  int collectives = 0;
  for (const ts::graph::step& s : p.steps) {
    flops += s.flops;
    transcendentals += s.transcendentals;
    const bool moved = ts::graph::is_collective(s.kind);
    (moved ? collective_bytes : bytes) += s.bytes;
    collectives += moved;
  }
  const auto cost = Lowered::cost_analysis();
  const auto counts = Lowered::collectives();
  return cost.flops == flops && cost.transcendentals == transcendentals && cost.bytes_accessed == bytes &&
         counts.all_reduce + counts.all_gather + counts.reduce_scatter == collectives &&
         counts.all_reduce_bytes + counts.all_gather_bytes + counts.reduce_scatter_bytes == collective_bytes &&
         Lowered::memory_analysis().temp_size_in_bytes == p.temporary_bytes;
}

TEST_CASE("Figures are the sums over the steps of the program") {
  STATIC_REQUIRE(summed_from_its_steps<data_parallel::lowered>());
  STATIC_REQUIRE(summed_from_its_steps<tensor_parallel::lowered_forward>());
  STATIC_REQUIRE(summed_from_its_steps<tensor_parallel::lowered_step>());
  STATIC_REQUIRE(summed_from_its_steps<fully_sharded::lowered>());
}

TEST_CASE("A program fits its trace: every argument and result has its type, parameters untouched have no result") {
  constexpr auto results = tensor_parallel::lowered_step::program().results.size();
  STATIC_REQUIRE(results == 1 + 2 + 4 + 1);  // loss, weights, moments, count
  STATIC_REQUIRE(tensor_parallel::lowered_forward::program().results.size() == 1);
  STATIC_REQUIRE(tensor_parallel::lowered_forward::trace().parameters.size() == 3);
}
