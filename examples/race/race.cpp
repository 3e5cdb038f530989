// SPDX-License-Identifier: Apache-2.0
// The six contenders: their steps are compiled here.
#include <race/race.hpp>

#include <tessera/optim/factored.hpp>
#include <tessera/optim/gradient_scaling.hpp>
#include <tessera/tessera.hpp>

#include <chrono>
#include <cmath>
#include <random>

namespace ts = tessera;

namespace race {

namespace {

using p = problem;

struct network {
  ts::nn::linear<p::features, p::width> first;
  ts::nn::linear<p::width, p::width> second;
  ts::nn::linear<p::width, p::width> third;
  ts::nn::linear<p::width, 1> last;
  TESSERA_MODULE(network, first, second, third, last)

  constexpr auto operator()(auto x) { return last(ts::gelu(third(ts::gelu(second(ts::gelu(first(x))))))); }
};

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

/// The network with the kernels of the problem.
auto beginning(const problem& given) {
  auto model = ts::init<network>(ts::nn::rngs{.params = 0});
  const auto put = [&](auto& kernel, int layer) {
    kernel.data = ts::runtime::make_storage(kernel.data->type, kernel.data->mesh);
    ts::runtime::copy_from_host(*kernel.data, given.kernels[layer].data());
  };
  put(model.first.kernel, 0), put(model.second.kernel, 1), put(model.third.kernel, 2), put(model.last.kernel, 3);
  return model;
}

template <class Transformation>
outcome run(const problem& given, Transformation update, int steps) {
  auto model = beginning(given);
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, std::move(update));
  const auto x = ts::device_put<ts::shape<p::rows, p::features>, ts::P<>, ts::mesh<>>(given.x);
  const auto y = ts::device_put<ts::shape<p::rows, 1>, ts::P<>, ts::mesh<>>(given.y);
  outcome seen;
  std::int64_t parameter_bytes = 0;
  ts::visit_variables(model, [&](const auto& v) { parameter_bytes += v.data->type.bytes(); });
  seen.state_bytes =
      static_cast<double>(decltype(optimizer)::state_bytes_per_device()) / static_cast<double>(parameter_bytes);
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step)
    seen.losses.push_back(static_cast<double>(ts::jit<train_step>(model, optimizer, x, y).item()));
  seen.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return seen;
}

/// A contender whose transformation is made for a rate with this peak.
template <class Make>
contender enter(const char* name, double peak, Make make) {
  return {name, [=](const problem& given, int steps) {
            return run(given, make(ts::optim::warmup_cosine_decay_schedule(0, peak, 50, steps, peak / 100)), steps);
          }};
}

}  // namespace

problem drawn(unsigned seed) {
  std::mt19937 bits(seed);
  const auto uniform = [&] { return static_cast<float>(bits() >> 8) / static_cast<float>(1 << 24); };
  problem made;
  for (int i = 0; i < p::rows * p::features; ++i) made.x.push_back(4 * uniform() - 2);
  for (int row = 0; row < p::rows; ++row) {
    const float* at = made.x.data() + row * p::features;
    made.y.push_back(std::sin(at[0] * at[1]) + 0.5f * std::cos(at[2]));
  }
  for (int layer = 0; layer < p::layers; ++layer) {
    const int inputs = layer == 0 ? p::features : p::width;
    const int outputs = layer + 1 == p::layers ? 1 : p::width;
    for (int i = 0; i < inputs * outputs; ++i) {
      const float radius = std::sqrt(-2 * std::log(1 - uniform()));
      made.kernels[layer].push_back(radius * std::cos(6.2831853f * uniform()) *
                                    std::sqrt(2.0f / static_cast<float>(inputs)));
    }
  }
  return made;
}

std::vector<contender> contenders() {
  namespace optim = ts::optim;
  constexpr optim::adafactor_form by_rate_alone{.multiply_by_parameter_scale = false};
  return {
      enter("sgd+momentum", 3e-2, [](auto rate) { return optim::sgd(rate, 0.9); }),
      enter("adamw", 3e-3, [](auto rate) { return optim::adamw(rate, {.weight_decay = 1e-4}); }),
      enter("adafactor", 3e-3, [=](auto rate) { return optim::adafactor<by_rate_alone>(rate); }),
      enter("lamb", 1e-2, [](auto rate) { return optim::lamb(rate, {.weight_decay = 1e-4}); }),
      enter("lars", 1, [](auto rate) { return optim::lars(rate, {.weight_decay = 1e-4}); }),
      enter("lion", 3e-4, [](auto rate) { return optim::lion(rate, {.weight_decay = 1e-3}); }),
  };
}

}  // namespace race
