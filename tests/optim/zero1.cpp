// SPDX-License-Identifier: Apache-2.0
// State cut over an axis that parameters do not lie along: bytes, collectives, and the same training. And the passes
// over memory that an update makes.
#include "running.hpp"

#include <tessera/analysis/summary.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/ops.hpp>
#include <tessera/optim/gradient_scaling.hpp>
#include <tessera/optim/wrappers.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <cmath>

using namespace optim_test;
using nn::param, nn::zero1;

namespace {

using cluster = mesh<axis<"data", 8>>;

struct model {
  nn::variable<nn::param, f32, shape<16, 8>> w;
  nn::variable<nn::param, f32, shape<8>> b;
  nn::variable<nn::param, f32, shape<3>> s;
  TESSERA_MODULE(model, w, b, s)
};

inline constexpr auto loss = [](auto& m, auto x, auto y) {
  return mean(square(matmul(x, m.w) + m.b - y)) + sum(square(m.s));
};
inline constexpr auto train = [](auto& m, auto& optimizer, auto x, auto y) {
  auto [l, grads] = value_and_grad(loss)(m, x, y);
  optimizer.update(m, grads);
  return l;
};

using batch = tensor<f32, shape<32, 16>, P<"data">, cluster>;
using targets = tensor<f32, shape<32, 8>, P<"data">, cluster>;

template <class Model, class Optimizer>
using traced_step = transform::traced<train, Model, Optimizer, batch, targets>;

numbers wave(std::size_t size, double pace) {
  numbers x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<float>(std::sin(pace * static_cast<double>(i + 1)));
  return x;
}

template <class Model, class Optimizer>
running prepared(const Model& m, const Optimizer& o) {
  running r{traced_step<Model, Optimizer>::run()};
  r.add(m), r.add(o);
  r.inputs.push_back(bytes_of(wave(32 * 16, 0.7)));
  r.inputs.push_back(bytes_of(wave(32 * 8, 0.3)));
  return r;
}

auto fresh() {
  auto m = init<model, cluster>(nn::rngs{.params = 0});
  const auto put = [](auto& v, double pace) {
    const numbers x = wave(static_cast<std::size_t>(v.data->type.size()), pace);
    runtime::copy_from_host(*v.data, x.data());
  };
  put(m.w, 1.1), put(m.b, 2.3), put(m.s, 0.4);
  return m;
}

analysis::collective_counts counts(const graph::graph& trace) {
  return analysis::facts_of(transform::lower(trace), trace.mesh).summary.collectives;
}

template <class Transformation>
void train_both_ways(Transformation t, int more_all_reduces) {
  auto m = fresh();
  auto whole = nn::optimizer<param>(m, t);
  auto spread = nn::optimizer<param, zero1<"data">>(m, t);
  running plain = prepared(m, whole);
  running sharded = prepared(m, spread);
  for (int i = 0; i < 4; ++i) CHECK(sharded.step() == Approx(plain.step()).epsilon(1e-5));
  for (std::size_t i = 0; i < 3; ++i) {
    const numbers a = numbers_of(plain.inputs[i]);
    const numbers b = numbers_of(sharded.inputs[i]);
    for (std::size_t j = 0; j < a.size(); ++j) CHECK(b[j] == Approx(a[j]).epsilon(1e-5).margin(1e-6));
  }
  CHECK(counts(plain.trace).all_gather == 0);
  CHECK(counts(plain.trace).reduce_scatter == 0);
  // The matrix' gradient is scattered; those of the vectors are sums that go with the loss in one all-reduce.
  CHECK(counts(sharded.trace).reduce_scatter == 1);
  CHECK(counts(sharded.trace).reduce_scatter_bytes == 16 * 8 * 4);
  CHECK(counts(sharded.trace).all_gather == 2);
  CHECK(counts(sharded.trace).all_reduce == counts(plain.trace).all_reduce + more_all_reduces);
}

}  // namespace

TEST_CASE("ZeRO-1 keeps an eighth of the state on each of eight devices") {
  auto m = fresh();
  using whole = decltype(nn::optimizer<param>(m, optim::adam(1e-2)));
  using spread = decltype(nn::optimizer<param, zero1<"data">>(m, optim::adam(1e-2)));
  STATIC_REQUIRE(whole::state_bytes_per_device() == 4 + 2 * 4 * (128 + 8 + 3));
  // Three elements cannot be shared by eight devices.
  STATIC_REQUIRE(spread::state_bytes_per_device() == 4 + 2 * 4 * (16 + 1 + 3));
}

TEST_CASE("ZeRO-1 scatters gradients, gathers parameters, and trains alike") {
  train_both_ways(optim::adam(1e-2), 0);
  // Norms of what is cut are all-reduced: one for each array that is, or one for all together.
  train_both_ways(optim::lamb(1e-2), 1);
  train_both_ways(optim::chain(optim::clip_by_global_norm(0.5), optim::adamw(1e-2)), 1);
}

TEST_CASE("hyperparameters are read and written by name, and what follows from them") {
  auto m = fresh();
  auto o = nn::optimizer<param>(m, optim::adamw(1e-2));
  CHECK(o.hyperparam("learning_rate") == 1e-2f);
  CHECK(o.hyperparam("parts[1].weight_decay") == 1e-4f);
  o.set_hyperparam("learning_rate", 0.5);
  o.set_hyperparam("b1", 0.8);
  CHECK(o.hyperparam("learning_rate") == 0.5f);
  CHECK(o.hyperparam("rest1") == static_cast<float>(1 - 0.8));
  CHECK(o.hyperparams().size() == 7);
  CHECK_THAT(message_of([&] { o.set_hyperparam("momentum", 1); }),
             Catch::Contains("momentum names 0 hyperparameters") && Catch::Contains("parts[0].b1"));
  auto by_schedule = nn::optimizer<param>(m, optim::sgd(optim::warmup_cosine_decay_schedule(0, 1, 2, 10)));
  by_schedule.set_hyperparam("peak_value", 2);
  CHECK(by_schedule.hyperparam("learning_rate.peak_value") == 2);
}

namespace {

struct large_layer {
  nn::variable<nn::param, f32, shape<512, 256>> w;
  nn::variable<nn::param, f32, shape<256>> b;
  TESSERA_MODULE(large_layer, w, b)
};
struct large {
  std::array<large_layer, 3> layers;
  TESSERA_MODULE(large, layers)
};

inline constexpr auto update = [](auto& m, auto& grads, auto& optimizer) {
  gradients<nn::bound<large, mesh<>>> g;
  std::size_t next = 0;
  optim::values from = optim::values_of(grads);
  visit_variables(g, [&](auto& v) { optim::assign_one(v, from[next++]); });
  optimizer.update(m, g);
};

/// Bytes read and written a parameter by one update, and how many kernels it is.
template <class Transformation>
std::pair<double, std::size_t> cost_of(Transformation t) {
  auto m = init<large>(nn::rngs{.params = 0});
  auto o = nn::optimizer<param>(m, std::move(t));
  using traced = transform::traced<update, decltype(m), const decltype(m), decltype(o)>;
  const graph::program p = transform::lower(traced::run());
  std::int64_t bytes = 0;
  for (const graph::step& s : p.steps) bytes += s.bytes;
  return {static_cast<double>(bytes) / (3 * (512 * 256 + 256)), p.codes.size()};
}

}  // namespace

TEST_CASE("an update is one pass over memory, by one kernel for all parameters and one for the numbers") {
  const auto check = [](auto t, double bytes) {
    const auto [moved, kernels] = cost_of(std::move(t));
    CHECK(moved == Approx(bytes).epsilon(1e-3));
    CHECK(kernels <= 2);
  };
  check(optim::sgd(0.1), 12);
  check(optim::sgd(0.1, 0.9), 20);
  check(optim::adamw(1e-3), 28);
  check(optim::adamw(optim::warmup_cosine_decay_schedule(0, 1e-3, 10, 100)), 28);
  check(optim::lion(1e-3), 20);
  check(optim::multi_steps(optim::adamw(1e-3), 4), 36);
}
