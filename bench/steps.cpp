// SPDX-License-Identifier: Apache-2.0
// Training steps of five models, two of them in bfloat16 too, beside PyTorch in the same run, on one thread and on two:
// `steps.<workload>.<threads>t=<ours> ms ratio=<PyTorch's time / ours> peer=pytorch`.
#include "peers/served.hpp"
#include "remat/rows.hpp"
#include "support.hpp"

#include <race/race.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ts = tessera;
using remat::call_checkpointed, remat::call_layer;

template <class Shape, ts::dtype E = ts::f32>
auto normal(std::uint64_t seed, float scale = 1) {
  std::vector<float> host(static_cast<std::size_t>(Shape::size));
  ts::random::fill_normal(std::span(host), ts::random::make_key(seed), 0);
  std::vector<ts::storage_t<E>> scaled;
  for (float x : host) scaled.push_back(static_cast<ts::storage_t<E>>(x * scale));
  return ts::device_put<Shape, ts::P<>, ts::mesh<>>(scaled);
}

template <auto Call, ts::dtype E = ts::f32>
std::function<void()> mlp_step() {
  auto layers = ts::init<ts::nn::stack<16, remat::mlp_layer<256, 1024, E>>>(ts::nn::rngs{0});
  const auto x = normal<ts::shape<256, 256>, E>(1);
  return [=]() mutable { ts::jit<remat::gradient<remat::stack_loss<Call>>>(layers, x); };
}

std::function<void()> wide_step() {
  const auto w1 = normal<ts::shape<512, 8192>>(1, 0.04f);
  const auto w2 = normal<ts::shape<8192, 512>>(2, 0.01f);
  const auto x = normal<ts::shape<64, 512>>(3), targets = normal<ts::shape<64, 512>>(4);
  return [=] { ts::jit<remat::wide_step<false>>(w1, w2, x, targets); };
}

template <auto Call, ts::dtype E = ts::f32>
std::function<void()> transformer_step() {
  auto blocks = ts::init<remat::transformer<8, 256, 4, 1024, E>>(ts::nn::rngs{0});
  const auto tokens = normal<ts::shape<8, 128, 256>, E>(2), targets = normal<ts::shape<8, 128, 256>, E>(3);
  return [=]() mutable { ts::jit<remat::gradient<remat::transformer_loss<Call>>>(blocks, tokens, targets); };
}

struct small_network {
  ts::nn::linear<784, 32> first;
  ts::nn::linear<32, 10> last;
  TESSERA_MODULE(small_network, first, last)

  constexpr auto operator()(auto x) { return last(ts::relu(first(x))); }
};
inline constexpr auto small_loss = [](auto& model, auto x, auto labels) {
  return ts::mean(ts::optim::softmax_cross_entropy_with_integer_labels(model(x), labels));
};
inline constexpr auto small_train_step = [](auto& model, auto& optimizer, auto x, auto labels) {
  auto [l, grads] = ts::value_and_grad(small_loss)(model, x, labels);
  optimizer.update(model, grads);
  return l;
};

std::function<void()> small_step() {
  auto model = ts::init<small_network>(ts::nn::rngs{0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-3));
  const auto x = normal<ts::shape<64, 784>>(1);
  std::vector<std::int32_t> classes(64);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>(i % 10);
  auto labels = ts::device_put<ts::shape<64>, ts::P<>, ts::mesh<>>(classes);
  return [=]() mutable { ts::jit<small_train_step>(model, optimizer, x, labels); };
}

/// A workload: what one call is, how many calls are timed together, and the steps that a call of the peer is.
struct workload {
  const char* name;
  std::function<void()> run;
  int calls;
  int steps_a_call = 1;
};

/// Both sides take turns; the peer's threads have gone to sleep when ours start.
void compare(const workload& w, int threads, bench::served_peer& peer) {
  constexpr int rounds = 9;
  const ts::max_threads limit(threads);
  std::vector<double> ours, theirs;
  const std::string question =
      std::string(w.name) + " " + std::to_string(threads) + " " + std::to_string(w.calls * w.steps_a_call);
  for (int round = -1; round < rounds; ++round) {
    const auto answer = peer.ask(question);
    std::this_thread::sleep_for(std::chrono::milliseconds(peer.present() ? 20 : 0));
    const double mine = bench::seconds_a_call(w.run, w.calls) / w.steps_a_call;
    if (round < 0) continue;
    ours.push_back(mine);
    if (answer) theirs.push_back(*answer);
  }
  const double mine = bench::median(ours);
  if (theirs.size() == ours.size())
    std::printf("steps.%s.%dt=%.4f ms ratio=%.2f peer=pytorch\n", w.name, threads, 1e3 * mine,
                bench::median_ratio(theirs, ours));
  else std::printf("steps.%s.%dt=%.4f ms ratio=none peer=absent\n", w.name, threads, 1e3 * mine);
  std::fflush(stdout);
}

inline constexpr auto twice = [](auto v) { return v + v; };

/// Steps of nothing but one scalar: what calling costs.
void print_empty_step() {
  const auto x = ts::device_put<ts::shape<>, ts::P<>, ts::mesh<>>(std::vector<float>{1});
  const double seconds = bench::turns({{"empty", [&] { ts::jit<twice>(x); }}}, 9, 1000).seconds(0);
  std::printf("steps.empty=%.2f us ratio=none peer=none\n", 1e6 * seconds);
}

}  // namespace

int main(int argc, char** argv) {
  bench::served_peer peer(TESSERA_BENCH_DIR "/peers/pytorch_steps.py", "torch");
  const race::problem given = race::drawn(42);
  const auto adamw = race::contenders()[1];
  constexpr int race_steps = 100;
  const std::vector<workload> workloads{
      {"mlp", mlp_step<call_layer>(), 1},
      {"mlp_remat", mlp_step<call_checkpointed<ts::nothing_saveable>>(), 1},
      {"wide", wide_step(), 4},
      {"transformer", transformer_step<call_layer>(), 1},
      {"transformer_remat", transformer_step<call_checkpointed<ts::nothing_saveable>>(), 1},
      {"mlp_bf16", mlp_step<call_layer, ts::bf16>(), 1},
      {"transformer_bf16", transformer_step<call_layer, ts::bf16>(), 1},
      {"race", [&] { adamw.run(given, race_steps); }, 1, race_steps},
      {"small", small_step(), 500},
  };
  print_empty_step();
  for (const workload& w : workloads) {
    if (argc > 1 && std::find(argv + 1, argv + argc, std::string(w.name)) == argv + argc) continue;
    for (int threads : {1, 2}) compare(w, threads, peer);
  }
}
