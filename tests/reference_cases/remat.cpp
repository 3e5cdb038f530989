// SPDX-License-Identifier: Apache-2.0
// Sections 6.6 and 6.10 and exercise 2: values and gradients under every checkpoint policy, and what the plans need.
// The large programs are planned and run by the passes and the executor of `jit`, with elementwise steps interpreted.
#include "remat/rows.hpp"
#include "support.hpp"

#include <tessera/random/distributions.hpp>
#include <tessera/runtime/evaluate.hpp>

#include <catch2/catch.hpp>

#include <cstring>

namespace {

using namespace cases;

using bytes = std::vector<std::byte>;

bytes as_bytes(std::span<const float> values) {
  bytes all(values.size_bytes());
  std::memcpy(all.data(), values.data(), all.size());
  return all;
}
std::span<const float> floats(const bytes& all) {
  return {reinterpret_cast<const float*>(all.data()), all.size() / sizeof(float)};
}

/// Normal numbers times a factor.
bytes normal(ts::random::key key, std::size_t count, float factor = 1) {
  std::vector<float> values(count);
  ts::random::fill_normal(std::span(values), key, 0);
  for (float& v : values) v *= factor;
  return as_bytes(values);
}

double norm(const bytes& all) {
  double squares = 0;
  for (const float x : floats(all)) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}
double sum(const bytes& all) {
  double total = 0;
  for (const float x : floats(all)) total += static_cast<double>(x);
  return total;
}

bytes fixture(const std::string& file) {
  const auto host = reference::load_npy<float>(file);
  return as_bytes({host.data(), host.size()});
}

template <const auto& Step, class... Args>
std::vector<bytes> run(std::span<const bytes> inputs) {
  return ts::runtime::evaluate(ts::transform::traced<Step, Args...>::run(), inputs);
}

template <class Job>
double gflop(Job job) {
  return static_cast<double>(remat::planned(job).cost.flops) / 1e9;
}

// 6.6: a block of two products with a relu in between.

inline constexpr auto relu_block = [](auto x, auto w1, auto b1, auto w2, auto b2) {
  return ts::matmul(ts::relu(ts::matmul(x, w1) + b1), w2) + b2;
};
template <bool Checkpointed>
inline constexpr auto relu_step = [](auto w1, auto b1, auto w2, auto b2, auto x) {
  const auto loss = [&](auto p) {
    const auto call = [&](auto... each) { return relu_block(x, each...); };
    if constexpr (Checkpointed) return ts::sum(std::apply(ts::checkpoint(call), p));
    else return ts::sum(std::apply(call, p));
  };
  auto [l, grads] = ts::value_and_grad(loss)(std::tuple(w1, b1, w2, b2));
  return std::pair(l, grads);
};
template <bool Checkpointed>
std::vector<bytes> run_relu_block() {
  using remat::array;
  const auto keys = ts::random::split<2>(ts::random::make_key(0));
  const bytes inputs[] = {normal(keys[0], 128 * 512), as_bytes(std::vector<float>(512)), normal(keys[1], 512 * 128),
                          as_bytes(std::vector<float>(128)), as_bytes(std::vector<float>(128, 1.0F))};
  return run<relu_step<Checkpointed>, array<128, 512>, array<512>, array<512, 128>, array<128>, array<1, 128>>(inputs);
}

template <auto Call>
inline constexpr auto object_step = remat::value_and_gradient<remat::object_loss<Call>>;

// 6.10: the wide block and the transformer.

template <bool Checkpointed>
std::vector<bytes> run_wide_block() {
  using remat::array;
  const auto keys = ts::random::split<5>(ts::random::make_key(42));
  const bytes inputs[] = {normal(keys[2], 512 * 8192, 0.02F), normal(keys[3], 8192 * 512, 0.02F),
                          normal(keys[1], 64 * 512), normal(keys[4], 64 * 512)};
  return run<remat::wide_step<Checkpointed>, array<512, 8192>, array<8192, 512>, array<64, 512>, array<64, 512>>(
      inputs);
}

template <auto Call>
inline constexpr auto transformer_step = remat::value_and_gradient<remat::transformer_loss<Call>>;

template <auto Call>
inline constexpr auto object_transformer_step = remat::value_and_gradient<remat::object_transformer_loss<Call>>;

/// A transformer of L blocks on B rows of T tokens.
template <auto Call, std::size_t L, std::size_t B, std::size_t T, std::size_t D, std::size_t F>
std::vector<bytes> run_transformer() {
  const auto keys = ts::random::split<3>(ts::random::make_key(610));
  const auto params = ts::random::split<4>(keys[0]);
  const auto narrow = static_cast<float>(remat::inverse_root(D));
  const auto wide = static_cast<float>(remat::inverse_root(F));
  const std::vector<float> ones(L * D, 1.0F), zeros(L * D);
  const bytes inputs[] = {normal(params[0], L * D * 3 * D, narrow),
                          normal(params[1], L * D * D, narrow),
                          normal(params[2], L * D * F, narrow),
                          normal(params[3], L * F * D, wide),
                          as_bytes(ones),
                          as_bytes(zeros),
                          as_bytes(ones),
                          as_bytes(zeros),
                          normal(keys[1], B * T * D),
                          normal(keys[2], B * T * D)};
  using layers = remat::transformer_stack<L, D, 4, F>;
  using x = remat::array<B, T, D>;
  return run<transformer_step<Call>, layers, x, x>(inputs);
}
template <auto Call>
std::vector<bytes> run_published_transformer() {
  return run_transformer<Call, 8, 8, 128, 256, 1024>();
}
template <auto Call>
std::vector<bytes> run_small_transformer() {
  return run_transformer<Call, 3, 2, 16, 32, 64>();
}

// Exercise 2.

template <std::int64_t K>
inline constexpr auto grouped_step = [](auto w, auto x) {
  auto [l, g] = ts::value_and_grad(remat::grouped_loss<K>)(w, x);
  return std::pair(l, g);
};
template <std::int64_t K>
std::vector<bytes> run_groups() {
  const bytes inputs[] = {fixture("ex2_w.npy"), fixture("ex2_x.npy")};
  return run<grouped_step<K>, remat::array<64, 128, 128>, remat::array<128, 128>>(inputs);
}

}  // namespace

TEST_CASE("Every row of the memory table is at its target or below, and below XLA") {
  remat::for_each_row([](const remat::published& row, auto job) {
    const double ours = remat::mib(remat::planned(job).memory.temp_size_in_bytes);
    INFO(row.name);
    CHECK(ours <= row.target);
    CHECK(ours < row.xla);
  });
}

TEST_CASE("Programs in bfloat16 need at most 0.55 of the temporary memory of float32") {
  remat::for_each_pair([](const char* name, auto wide, auto narrow) {
    INFO(name);
    const auto bytes = [](auto job) { return static_cast<double>(remat::planned(job).memory.temp_size_in_bytes); };
    CHECK(bytes(narrow) <= 0.55 * bytes(wide));
  });
}

TEST_CASE("The compiler knows what a policy costs") {
  STATIC_REQUIRE(remat::scan_job<remat::call_layer>::lowered::memory_analysis().temp_size_in_bytes <= 22 * ts::MiB);
  STATIC_REQUIRE(
      remat::scan_job<remat::call_checkpointed<ts::nothing_saveable>>::lowered::memory_analysis().temp_size_in_bytes <=
      6 * ts::MiB + 256 * ts::KiB);
}

TEST_CASE("Checkpoints repeat the forward work once at most") {
  using namespace remat;
  const double forward = gflop(job<plain_loss, written_out<16, 256, 1024>, mlp_x>{});
  const double plain = gflop(unrolled_job<plain_loss>{});
  CHECK(plain / forward >= 2.9);
  CHECK(plain / forward <= 3.0);
  CHECK(gflop(unrolled_job<layerwise_loss>{}) / plain <= 1.17);
  CHECK(gflop(unrolled_job<whole_loss>{}) / plain <= 1.001);
  CHECK(reference::check("matmul_gflop_fwd_total_layerwise",
                         reference::json{forward, plain, gflop(unrolled_job<layerwise_loss>{})}));
  const double with_value = gflop(job<value_and_gradient<plain_loss>, written_out<16, 256, 1024>, mlp_x>{});
  const double again = gflop(job<value_and_gradient<whole_loss>, written_out<16, 256, 1024>, mlp_x>{});
  CHECK(again / with_value == Approx(4.0 / 3).margin(0.01));
}

TEST_CASE("A block of the first section has the reference's gradients, with a checkpoint too") {
  const auto plain = run_relu_block<false>();
  const auto both = [&](std::size_t i) { return std::vector<double>{norm(plain[i]), sum(plain[i])}; };
  const auto got =
      reference::json{{"sum", sum(plain[0])}, {"w1", both(1)}, {"b1", both(2)}, {"w2", both(3)}, {"b2", both(4)}};
  CHECK(reference::check("relu_block_sum_and_grads", got));
  CHECK(run_relu_block<true>() == plain);
}

TEST_CASE("Eight blocks as objects have the reference's loss and gradients, with checkpoints too") {
  using model_type = ts::nn::bound<remat::deep_mlp<8, 256, 1024>, ts::mesh<>>;
  const auto model = ts::init<remat::deep_mlp<8, 256, 1024>>(ts::nn::rngs{0});
  std::vector<bytes> inputs;
  ts::visit_variables(model, [&](const auto& v) { inputs.push_back(as_bytes(ts::nn::to_vector(v))); });
  inputs.push_back(fixture("s6_6_x.npy"));
  const auto plain = run<object_step<remat::call_layer>, model_type, remat::mlp_x>(inputs);
  reference::json got{{"loss", sum(plain[0])}};
  for (const std::size_t block : {0, 7}) {
    const char* names[] = {"up", "up_b", "down", "down_b"};
    for (std::size_t i = 0; i < 4; ++i) {
      const bytes& gradient = plain[1 + 4 * block + i];
      got[std::to_string(block) + "." + names[i]] = {norm(gradient), sum(gradient)};
    }
  }
  CHECK(reference::check("deep_mlp_loss_and_grads", got));
  CHECK(run<object_step<remat::call_checkpointed<ts::nothing_saveable>>, model_type, remat::mlp_x>(inputs) == plain);
  CHECK(run<object_step<remat::call_checkpointed<ts::dots_saveable>>, model_type, remat::mlp_x>(inputs) == plain);
}

TEST_CASE("The wide block has the reference's loss, with a checkpoint too") {
  const auto plain = run_wide_block<false>();
  CHECK(reference::check("wide_block_loss", sum(plain[0])));
  CHECK(run_wide_block<true>() == plain);
}

TEST_CASE("The transformer has the reference's loss and gradients, with checkpoints too") {
  std::int64_t parameters = 0;
  const remat::transformer<8, 256, 4, 1024> layers;
  ts::visit_variables(layers, [&](const auto& v) { parameters += std::remove_cvref_t<decltype(v)>::shape_type::size; });
  CHECK(reference::check("transformer_param_count", reference::json{parameters, remat::mib(4 * parameters)}));

  const auto plain = run_published_transformer<remat::call_layer>();
  CHECK(reference::check("transformer_loss", sum(plain[0])));
  CHECK(reference::check("transformer_grad_norms", reference::json{{"wqkv", norm(plain[1])},
                                                                   {"wo", norm(plain[2])},
                                                                   {"w1", norm(plain[3])},
                                                                   {"w2", norm(plain[4])},
                                                                   {"ln1_g", norm(plain[5])},
                                                                   {"ln1_b", norm(plain[6])},
                                                                   {"ln2_g", norm(plain[7])},
                                                                   {"ln2_b", norm(plain[8])}}));
  CHECK(run_published_transformer<remat::call_checkpointed<ts::nothing_saveable>>() == plain);
}

TEST_CASE("A small transformer has the same bits under every policy") {
  using remat::call_checkpointed;
  const auto plain = run_small_transformer<remat::call_layer>();
  CHECK(run_small_transformer<call_checkpointed<ts::nothing_saveable>>() == plain);
  CHECK(run_small_transformer<call_checkpointed<ts::everything_saveable>>() == plain);
  CHECK(run_small_transformer<call_checkpointed<ts::dots_saveable>>() == plain);
  CHECK(run_small_transformer<call_checkpointed<ts::dots_with_no_batch_dims_saveable>>() == plain);
  CHECK(run_small_transformer<call_checkpointed<ts::save_only_these_names<"mlp_hidden">>>() == plain);
}

TEST_CASE("Blocks of layer objects draw the reference's keys, and checkpoints change no bit of their gradients") {
  const auto full = ts::init<remat::object_transformer<2, 16, 4, 32>>(ts::nn::rngs{0});
  std::vector<bytes> inputs;
  reference::json keys;
  std::uint32_t call = 0;
  ts::visit_variables(full, [&](const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    const auto key = ts::random::fold_in(ts::random::make_key(0), call++);
    const auto values = ts::nn::to_vector(v);
    inputs.push_back(as_bytes(values));
    if constexpr (V::shape_type::rank == 2) {
      std::vector<float> drawn(values.size());
      V::init.fill(std::span(drawn), key, V::shape_type::extents);
      CHECK((drawn == values));
      if (keys.size() < 5) keys.push_back({key.hi, key.lo});
    }
  });
  CHECK(reference::check("object_transformer_first_keys", keys));
  for (std::uint64_t seed : {1, 2}) inputs.push_back(normal(ts::random::make_key(seed), 2 * 8 * 16));
  using model_type = ts::nn::bound<remat::object_transformer<2, 16, 4, 32>, ts::mesh<>>;
  using x = remat::array<2, 8, 16>;
  const auto plain = run<object_transformer_step<remat::call_layer>, model_type, x, x>(inputs);
  CHECK(run<object_transformer_step<remat::call_checkpointed<ts::nothing_saveable>>, model_type, x, x>(inputs) ==
        plain);
}

TEST_CASE("Checkpoints round groups of layers change no bit, and a group between 1 and 64 needs least") {
  const auto plain = run_groups<0>();
  CHECK(reference::check("ex2_loss", sum(plain[0])));
  CHECK(run_groups<1>() == plain);
  CHECK(run_groups<8>() == plain);

  const auto mib_of = [](auto job) { return remat::mib(remat::planned(job).memory.temp_size_in_bytes); };
  const double four = mib_of(remat::group_job<4>{});
  CHECK(four < mib_of(remat::group_job<1>{}));
  CHECK(four < mib_of(remat::group_job<64>{}));
}
