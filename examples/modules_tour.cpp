// SPDX-License-Identifier: Apache-2.0
// A tour of modules and their state: structure, split and merge, kinds of variables, a training loop with batch norm
// and dropout, evaluation. Each part prints what it shows and checks it.
#include <tessera/tessera.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ts = tessera;
namespace nn = tessera::nn;
using ts::none, ts::P;

namespace {

bool all_well = true;

void check(bool holds, const char* what) {
  std::printf("  %s %s\n", holds ? "ok  " : "FAIL", what);
  all_well = all_well && holds;
}

struct simple_mlp {
  std::tuple<nn::linear<784, 128>, nn::linear<128, 10>> layers;
  TESSERA_MODULE(simple_mlp, layers)

  constexpr auto operator()(auto x) const { return std::get<1>(layers)(ts::relu(std::get<0>(layers)(x))); }
};

/// A kind of variables of one's own.
struct step_counter {
  static constexpr std::string_view name = "step_counter";
};

struct bn_net {
  nn::linear<16, 32> l1;
  nn::batch_norm<32, ts::momentum<0.9>> bn;
  nn::dropout<0.1> drop;
  nn::linear<32, 4> l2;
  nn::variable<step_counter, ts::i32, ts::shape<>> calls;
  TESSERA_MODULE(bn_net, l1, bn, drop, l2, calls)

  constexpr auto operator()(auto x) {
    calls += 1;
    return l2(drop(ts::relu(bn(l1(x)))));
  }
};

inline constexpr auto forward = [](const auto& model, auto x) { return model(x); };
inline constexpr auto pure_forward = [](const auto& state, auto x) {
  return nn::merge(nn::graphdef<nn::bound<simple_mlp, ts::mesh<>>>{}, state)(x);
};
inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

template <class Shape>
auto normal_array(std::int64_t seed) {
  std::vector<float> host(static_cast<std::size_t>(Shape::size));
  ts::random::fill_normal(std::span<float>(host), ts::random::make_key(seed), 0);
  return ts::device_put<Shape, P<>, ts::mesh<>>(host);
}

template <class T>
std::string shapes(const T& object) {
  return shapes_text(nn::nested(nn::to_pure_dict(object)));
}

void structure_and_data() {
  std::printf("A module is a struct; its parameters are members\n");
  const auto model = ts::init<simple_mlp>(nn::rngs{0});
  const auto x = ts::device_put<ts::shape<1, 784>, P<>, ts::mesh<>>(std::vector<float>(784, 1.0F));
  const auto out = model(x);
  std::printf("  output %s\n  parameters %s\n", std::string(ts::type_text<decltype(out)>()).c_str(),
              shapes(nn::state<nn::param>(model)).c_str());
  const auto [def, state] = nn::split(model);
  std::printf("  leaves of the state: %zu\n", nn::leaf_count<decltype(model), nn::param>());
  check(nn::leaf_count<std::remove_cvref_t<decltype(model)>>() == 4, "four leaves");
  const auto values = out.to_vector();
  check(ts::jit<forward>(model, x).to_vector() == values, "a compiled step gives the bits of the direct call");
  check(ts::call(pure_forward, state, x).to_vector() == values, "so does a pure function of the state");
  check(nn::to_pure_dict(nn::merge(def, state)) == nn::to_pure_dict(model),
        "merge gives a module with the same values");
}

struct normed {
  nn::linear<128, 256> layer_1;
  nn::layer_norm<256> layer_norm;
  TESSERA_MODULE(normed, layer_1, layer_norm)
};
struct encoder_decoder {
  normed encoder;
  nn::linear<256, 10> decoder;
  TESSERA_MODULE(encoder_decoder, encoder, decoder)
};
template <class Optimizer>
struct training_state {
  encoder_decoder params;
  typename Optimizer::state_type opt_state;
  nn::variable<nn::rng_state, ts::u32, ts::shape<2>> rng_key;
  nn::variable<step_counter, ts::i32, ts::shape<>> step;
  TESSERA_MODULE(training_state, params, opt_state, rng_key, step)
};

void leaves_of_a_training_state() {
  std::printf("\nA training state: parameters, Adam's moments and count, a key, a step\n");
  using model = nn::bound<encoder_decoder, ts::mesh<>>;
  using optimizer = decltype(nn::optimizer<nn::param>(model{}, ts::optim::adam(1e-3)));
  constexpr std::size_t params = nn::leaf_count<encoder_decoder>();
  constexpr std::size_t moments = nn::leaf_count<typename optimizer::state_type>();
  constexpr std::size_t all = nn::leaf_count<training_state<optimizer>>();
  std::printf("  parameters %zu, Adam %zu, all %zu\n", params, moments, all);
  check(params == 6 && moments == 13 && all == 21, "6 + 13 + key + step = 21 leaves");
}

void kinds_of_variables() {
  std::printf("\nKinds of variables tell state apart\n");
  auto net = ts::init<bn_net>(nn::rngs{.params = 0, .dropout = 1});
  const auto [def, params, stats, rest] = nn::split<nn::param, nn::batch_stat, nn::everything_else>(net);
  std::printf("  param      %s\n  batch_stat %s\n  the rest   %s\n", shapes(params).c_str(), shapes(stats).c_str(),
              shapes(rest).c_str());
  check(nn::to_pure_dict(stats).size() == 2 && nn::to_pure_dict(rest).size() == 3, "each variable is in one state");
  std::printf("%s", ts::describe(net).c_str());

  auto optimizer = nn::optimizer<nn::param>(
      net, ts::optim::chain(ts::optim::clip_by_global_norm(1.0),
                            ts::optim::adamw(ts::optim::warmup_cosine_decay_schedule(0, 1e-3, 100, 1000, 1e-5))));
  const auto x = normal_array<ts::shape<64, 16>>(1);
  const auto y = normal_array<ts::shape<64, 4>>(2);
  const auto weights = nn::to_vector(net.l1.kernel), means = nn::to_vector(net.bn.mean);
  std::printf("\nFive training steps\n  loss");
  for (int i = 0; i < 5; ++i)
    std::printf(" %.4f", static_cast<double>(ts::jit<train_step>(net, optimizer, x, y).item()));
  std::printf("\n");
  check(nn::to_vector(net.calls)[0] == 5, "the counter says 5");
  check(nn::to_vector(net.l1.kernel) != weights, "parameters are trained");
  check(nn::to_vector(net.bn.mean) != means, "statistics have moved");

  nn::eval(net);
  const auto first = net(x).to_vector();
  check(net(x).to_vector() == first, "a net that evaluates gives the same twice");
  nn::train(net);
  check(net(x).to_vector() != net(x).to_vector(), "a net that trains draws anew");

  auto restored = ts::init<bn_net>(nn::rngs{.params = 123, .dropout = 1});
  nn::update(restored, nn::state<nn::param>(net), nn::state<nn::batch_stat>(net));
  check(nn::eval_mode(restored)(x).to_vector() == nn::eval_mode(net)(x).to_vector(),
        "parameters and statistics are all that evaluation needs");
}

using cluster = ts::mesh<ts::axis<"data", 8>>;

void one_key_for_all_devices() {
  std::printf("\nOne key is enough for any number of devices\n");
  const auto drop = [](auto spec, auto seed, auto x) {
    const auto kept = ts::random::bernoulli<ts::shape<32, 8>>(ts::random::make_key(seed), 0.5, spec);
    return ts::where(kept, x / 0.5, 0 * x);
  };
  const auto drop_alone = [&](auto seed, auto x) { return drop(ts::out_sharding<P<>>, seed, x); };
  const auto drop_by_rows = [&](auto seed, auto x) { return drop(ts::out_sharding<P<"data">>, seed, x); };
  const std::vector<float> ones(32 * 8, 1.0F);
  const int seed = 42;
  const auto single = ts::call(drop_alone, seed, ts::device_put<ts::shape<32, 8>, P<>, ts::mesh<>>(ones)).to_vector();
  const auto x = ts::device_put<ts::shape<32, 8>, P<"data">, cluster>(ones);
  const auto masked = ts::call(drop_by_rows, seed, x);
  std::printf("  %s -> %s, kept by device:", std::string(ts::type_text<decltype(x)>()).c_str(),
              std::string(ts::type_text<std::remove_cvref_t<decltype(masked)>>()).c_str());
  const auto values = masked.to_vector();
  for (std::size_t device = 0; device < 8; ++device) {
    int kept = 0;
    for (std::size_t i = 0; i < 32; ++i) kept += values[device * 32 + i] != 0 ? 1 : 0;
    std::printf(" %d", kept);
  }
  std::printf("\n");
  check(values == single, "eight devices drop what one device drops");
}

struct huge_layer {
  nn::linear<8192, 57344, ts::kernel<P<none, "model">>> up;
  nn::linear<28672, 8192, ts::kernel<P<"model">>> down;
  nn::linear<8192, 18432, ts::kernel<P<none, "model">>> attention;
  TESSERA_MODULE(huge_layer, up, down, attention)
};
struct huge_model {
  nn::stack<80, huge_layer> layers;
  TESSERA_MODULE(huge_model, layers)
};

void shapes_without_memory() {
  std::printf("\nA model of 70 billion parameters is a type\n");
  using pod = ts::mesh<ts::axis<"model", 8>>;
  for (const nn::leaf& leaf : nn::leaves<huge_model, pod>)
    std::printf("  %-24s %-7s %-14s %15lld bytes, %14lld on each device\n", std::string(leaf.path).c_str(),
                std::string(leaf.kind).c_str(), std::string(leaf.spec).c_str(), static_cast<long long>(leaf.bytes),
                static_cast<long long>(leaf.bytes_per_device));
  check(nn::tree_bytes<huge_model, nn::param, pod>() / 4 > 68'000'000'000, "its bytes are known, none is allocated");
}

}  // namespace

int main() {
  structure_and_data();
  leaves_of_a_training_state();
  kinds_of_variables();
  one_key_for_all_devices();
  shapes_without_memory();
  return all_well ? EXIT_SUCCESS : EXIT_FAILURE;
}
