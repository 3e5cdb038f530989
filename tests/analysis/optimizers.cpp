// SPDX-License-Identifier: Apache-2.0
// What is known of optimisers while a program compiles: bytes of state on each device, collectives, passes over memory.
#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/nn/stack.hpp>
#include <tessera/ops.hpp>
#include <tessera/optim/contrib.hpp>
#include <tessera/optim/factored.hpp>
#include <tessera/optim/wrappers.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

namespace {

namespace ts = tessera;
using ts::none, ts::P, ts::nn::param, ts::nn::zero1;

using data8 = ts::mesh<ts::axis<"data", 8>>;

struct block {
  ts::nn::linear<64, 64> up, down;
  TESSERA_MODULE(block, up, down)
  constexpr auto operator()(auto x) { return down(ts::relu(up(x))); }
};
struct network {
  ts::nn::stack<3, block> body;
  ts::nn::linear<64, 16> head;
  TESSERA_MODULE(network, body, head)
  constexpr auto operator()(auto x) { return head(body(x)); }
};

template <class Mesh, auto Make, class... Layout>
using optimizer_for =
    decltype(ts::nn::optimizer<param, Layout...>(std::declval<ts::nn::bound<network, Mesh>&>(), Make()));

constexpr auto adamw = [] { return ts::optim::adamw(1e-3, {}, ts::optim::named<"kernel">); };
constexpr auto adafactor = [] {
  return ts::optim::adafactor<ts::optim::adafactor_form{.min_dim_size_to_factor = 16}>(1e-3);
};
constexpr auto muon = [] { return ts::optim::contrib::muon(1e-3); };

constexpr auto of_biases = [] { return ts::optim::masked(ts::optim::sgd(0.1, 0.9), ts::optim::of_role<"bias">); };

constexpr std::int64_t kernels = 3 * 2 * 64 * 64, biases = 3 * 2 * 64, head = 64 * 16, head_bias = 16;
constexpr std::int64_t count = 4;

static_assert(optimizer_for<data8, adamw>::state_bytes_per_device() ==
              2 * 4 * (kernels + biases + head + head_bias) + count);
static_assert(optimizer_for<data8, adamw, zero1<"data">>::state_bytes_per_device() ==
              (2 * 4 * (kernels + biases + head + head_bias)) / 8 + count);
// Stacked matrices (3, 64, 64) have rows and columns (3, 64); the schedule of the rate counts nothing.
static_assert(optimizer_for<data8, adafactor>::state_bytes_per_device() ==
              4 * (2 * (3 * 64 + 3 * 64) + (64 + 16) + biases + head_bias) + count);
// Of rank 2 are the biases side by side and the kernel of the head.
static_assert(optimizer_for<data8, muon>::state_bytes_per_device() ==
              4 * (biases + head) + 2 * 4 * (kernels + head_bias) + 2 * count);

struct with_roles {
  ts::nn::variable<param, ts::f32, ts::shape<8, 4>, P<>, ts::nn::initializers::zeros(), ts::nn::role::weight> w;
  ts::nn::variable<param, ts::f32, ts::shape<4>, P<>, ts::nn::initializers::zeros(), ts::nn::role::bias> b;
  TESSERA_MODULE(with_roles, w, b)
};
using of_roles = decltype(ts::nn::optimizer<param>(std::declval<ts::nn::bound<with_roles, data8>&>(), of_biases()));
static_assert(of_roles::state_bytes_per_device() == 4 * 4);

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto train = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

using x = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, data8>;
using y = ts::tensor<ts::f32, ts::shape<32, 16>, P<"data">, data8>;
using step = ts::lowered<train, ts::nn::bound<network, data8>, optimizer_for<data8, adamw, zero1<"data">>, x, y>;

static_assert(step::collectives().all_gather == 6);
static_assert(step::collectives().reduce_scatter >= 1);

}  // namespace

TEST_CASE("What optimisers cost is known while the program compiles") {
  CHECK(step::memory_analysis().alias_size_in_bytes > 0);
}
