// SPDX-License-Identifier: Apache-2.0
// Sections 6.3 and 6.5: a network with batch normalisation and dropout trains as the reference does, and micro-batches
// have other statistics than the whole batch. Run by the passes and the executor of `jit`, interpreted.
#include "support.hpp"

#include <tessera/runtime/evaluate.hpp>

#include <catch2/catch.hpp>

#include <cstring>

namespace {

using namespace cases;
using bytes = std::vector<std::byte>;

template <class T>
bytes as_bytes(const std::vector<T>& values) {
  bytes all(values.size() * sizeof(T));
  std::memcpy(all.data(), values.data(), all.size());
  return all;
}
std::vector<double> numbers(const bytes& from) {
  std::vector<float> values(from.size() / sizeof(float));
  std::memcpy(values.data(), from.data(), from.size());
  return {values.begin(), values.end()};
}
bytes fixture(const std::string& file, std::size_t first = 0, std::size_t count = SIZE_MAX) {
  const auto host = reference::load_npy<float>(file);
  const std::size_t end = std::min(host.size(), count == SIZE_MAX ? count : first + count);
  return as_bytes(std::vector<float>(host.data() + first, host.data() + end));
}

/// The arrays of a module in the order of a step's arguments.
template <class Module>
void append_arrays(std::vector<bytes>& to, const Module& module) {
  ts::visit_variables(module, [&](const auto& v) { to.push_back(as_bytes(ts::nn::to_vector(v))); });
}

struct bn_net {
  ts::nn::linear<16, 32> l1;
  ts::nn::batch_norm<32, ts::momentum<0.9>> bn;
  ts::nn::dropout<0.1> drop;
  ts::nn::linear<32, 4> l2;
  TESSERA_MODULE(bn_net, l1, bn, drop, l2)

  constexpr auto operator()(auto x) { return l2(drop(ts::relu(bn(l1(x))))); }
};

struct small_net {
  ts::nn::linear<16, 8> l;
  ts::nn::batch_norm<8> bn;
  ts::nn::linear<8, 1> o;
  TESSERA_MODULE(small_net, l, bn, o)

  constexpr auto operator()(auto x) { return o(ts::relu(bn(l(x)))); }
};

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};
inline constexpr auto gradients = [](auto& model, auto x, auto y) {
  const auto g = ts::grad(loss)(model, x, y);
  const auto array = [](const auto& v) { return ts::reshard<P<>>(v); };
  return std::tuple(array(g.l.kernel), array(g.l.bias), array(g.bn.scale), array(g.bn.bias), array(g.o.kernel),
                    array(g.o.bias));
};

template <std::int64_t Rows, std::int64_t Columns>
using array = ts::tensor<ts::f32, ts::shape<Rows, Columns>, P<>, ts::mesh<>>;

template <std::int64_t Rows>
std::vector<std::vector<double>> gradients_of_rows(const std::vector<bytes>& module, std::size_t first) {
  std::vector<bytes> inputs = module;
  inputs.push_back(fixture("s6_5_x.npy", first * 16, Rows * 16));
  inputs.push_back(fixture("s6_5_y.npy", first, Rows));
  const auto trace =
      ts::transform::traced<gradients, ts::nn::bound<small_net, ts::mesh<>>, array<Rows, 16>, array<Rows, 1>>::run();
  const std::vector<bytes> out = ts::runtime::evaluate(trace, inputs);
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (trace.outputs[i].alias < 0) all.push_back(numbers(out[i]));
  return all;
}

}  // namespace

TEST_CASE("A network with batch normalisation and dropout has the reference's losses and running statistics") {
  auto model = ts::init<bn_net>(ts::nn::rngs{.params = 0, .dropout = 1});
  const auto rate = ts::optim::warmup_cosine_decay_schedule(0, 1e-3, 100, 1000, 1e-5);
  const auto optimizer = ts::nn::optimizer<ts::nn::param>(
      model, ts::optim::chain(ts::optim::clip_by_global_norm(1.0), ts::optim::adamw(rate, 0.9, 0.999, 1e-8, 1e-4)));
  std::vector<bytes> arguments;
  append_arrays(arguments, model);
  append_arrays(arguments, optimizer);
  arguments.push_back(fixture("s6_3_x.npy"));
  arguments.push_back(fixture("s6_3_y.npy"));
  const auto trace = ts::transform::traced<train_step, decltype(model), std::remove_const_t<decltype(optimizer)>,
                                           array<64, 16>, array<64, 4>>::run();
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    const std::vector<bytes> out = ts::runtime::evaluate(trace, arguments);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (trace.outputs[i].alias >= 0) arguments[static_cast<std::size_t>(trace.outputs[i].alias)] = out[i];
      else losses.push_back(numbers(out[i])[0]);
    }
  }
  CHECK(reference::check("bnnet_losses", losses));
  const std::vector<double> mean = numbers(arguments[4]), var = numbers(arguments[5]);
  double sum = 0;
  for (const double x : var) sum += x;
  const auto first_four = [](const std::vector<double>& all) {
    return std::vector<double>(all.begin(), all.begin() + 4);
  };
  const reference::json statistics{{"mean[0:4]", first_four(mean)}, {"var[0:4]", first_four(var)}, {"var_sum", sum}};
  CHECK(reference::check("bnnet_running_stats_after_5", statistics));
}

TEST_CASE(
    "Micro-batches through batch normalisation have other gradients than the whole batch, as the reference says") {
  std::vector<bytes> module;
  append_arrays(module, ts::init<small_net>(ts::nn::rngs{0}));
  const auto whole = gradients_of_rows<64>(module, 0);
  auto apart = whole;
  for (const std::size_t first : {0, 16, 32, 48}) {
    const auto part = gradients_of_rows<16>(module, first);
    for (std::size_t v = 0; v < apart.size(); ++v)
      for (std::size_t i = 0; i < apart[v].size(); ++i) apart[v][i] -= part[v][i] / 4;
  }
  double largest = 0;
  for (const auto& each : apart)
    for (const double x : each) largest = std::max(largest, std::abs(x));
  CHECK(reference::check("bn_micro_grad_diff", largest));
}
