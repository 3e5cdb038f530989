// SPDX-License-Identifier: Apache-2.0
// Modules taken apart and put together, calls outside compiled steps, keys by path, logical axes.
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <vector>

#include "reference/reference.hpp"

namespace ts = tessera;
namespace nn = tessera::nn;
using ts::none, ts::P;

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

struct step_counter : nn::variable<step_counter, ts::i32, ts::shape<>> {
  static constexpr std::string_view name = "step_counter";
  using variable::operator=;
};

struct scaled {
  nn::variable<nn::param, ts::f32, ts::shape<8>, P<"model">, nn::initializers::ones(), nn::role::scale> scale;
  nn::variable<nn::batch_stat, ts::f32, ts::shape<8>> mean;
  TESSERA_MODULE(scaled, scale, mean)

  constexpr auto operator()(auto x) {
    mean = 0.9 * mean + 0.1 * ts::sum<0>(x);
    return x * ts::reshard<P<>>(scale);
  }
};

struct net {
  ts::nn::linear<16, 8> first;
  scaled norm;
  nn::key_stream<"dropout"> drop;
  std::array<ts::nn::linear<8, 8>, 2> layers;
  step_counter calls;
  TESSERA_MODULE(net, first, norm, drop, layers, calls)

  constexpr auto operator()(auto x) {
    calls += 1;
    auto h = ts::tanh(norm(first(x)));
    for (auto& layer : layers) h = ts::relu(layer(h)) + h;
    if (nn::evaluates(*this)) return h;
    return h * ts::random::uniform<ts::shape<4, 8>>(drop());
  }
};

inline constexpr auto eval_step = [](auto& model, auto x) { return ts::tanh(model(x)); };

using model_type = nn::bound<net, cluster>;
using single = ts::mesh<ts::axis<"data", 1>, ts::axis<"model", 1>>;
using one_device = nn::bound<net, single>;

// The leaves of a type are a constant.
static_assert(nn::leaf_count<net>() == 11);
static_assert(nn::leaf_count<net, nn::param>() == 7);
static_assert(nn::leaf_count<net, nn::batch_stat>() == 1);
static_assert(nn::leaf_count<net, step_counter>() == 1);
static_assert(nn::leaf_count<net, nn::role::scale>() == 1);
static_assert(nn::leaf_count<net, nn::role::weight>() == 3 && nn::leaf_count<net, nn::role::bias>() == 3);
static_assert(nn::leaf_count<nn::layer_norm<8>, nn::any_of<nn::role::scale, nn::role::bias>>() == 2);
static_assert(nn::leaf_count<nn::embed<8, 4>, nn::role::embedding>() == 1);
static_assert(nn::leaf_count<net, nn::path<"layers">>() == 4);
static_assert(nn::leaf_count<net, nn::path<"layers[1]">>() == 2);
static_assert(nn::leaf_count<net, nn::path<"layer">>() == 0);
static_assert(nn::leaf_count<net, nn::path_contains<"bias">>() == 3);
static_assert(nn::leaf_count<net, nn::any_of<nn::role::scale, nn::batch_stat>>() == 2);
static_assert(nn::leaf_count<net, nn::all_of<nn::param, nn::not_<nn::path_contains<"kernel">>>>() == 4);

// A model of 70 billion parameters costs nothing but its type.
struct large {
  nn::embed<128256, 8192, ts::embedding<P<"model">>> tokens;
  nn::stack<80, nn::transformer_block<8192, 64, 32768, ts::num_kv_heads<8>, ts::tensor_parallel<"model">>> blocks;
  nn::layer_norm<8192> norm;
  TESSERA_MODULE(large, tokens, blocks, norm)
};
static_assert(nn::tree_bytes<large, nn::param, cluster>() > 4 * std::int64_t{55'000'000'000});
static_assert(nn::tree_bytes_per_device<large, nn::param, cluster>() < 60 * ts::GiB);
static_assert(nn::eval_shape<large, cluster>()[0].bytes == std::int64_t{4} * 128256 * 8192);
static_assert(nn::eval_shape<large>()[0].bytes_per_device == nn::eval_shape<large>()[0].bytes);
static_assert(nn::get_partition_spec<large, cluster>("tokens.embedding") == "(model,)");
static_assert(nn::get_partition_spec<large, cluster>("norm.scale") == "()");

constexpr auto leaves = nn::leaves<model_type>;
static_assert(leaves[2].path == "norm.scale" && leaves[2].kind == "param" && leaves[2].role == "scale");
static_assert(leaves[2].bytes == 32 && leaves[2].bytes_per_device == 8 && leaves[2].spec == "(model,)");
static_assert(leaves[3].path == "norm.mean" && leaves[3].kind == "batch_stat" && leaves[3].role.empty());
static_assert(leaves[6].path == "layers[0].kernel" && leaves[6].type.rank == 2 && leaves[6].spec == "()");
static_assert(leaves[10].path == "calls" && leaves[10].kind == "step_counter");
static_assert(nn::tree_bytes<model_type, nn::param>() == 4 * (16 * 8 + 8 + 8 + 2 * (8 * 8 + 8)));
static_assert(nn::tree_bytes<model_type>() - nn::tree_bytes_per_device<model_type>() == 24);

// A model of 70 billion parameters costs nothing but its type.
struct huge_layer {
  ts::nn::linear<8192, 10240, ts::kernel<P<none, "model">>> qkv;
  ts::nn::linear<8192, 8192, ts::kernel<P<"model">>> out;
  ts::nn::linear<8192, 57344, ts::kernel<P<none, "model">>> up;
  ts::nn::linear<28672, 8192, ts::kernel<P<"model">>> down;
  TESSERA_MODULE(huge_layer, qkv, out, up, down)
};
struct huge {
  nn::stack<80, huge_layer> layers;
  nn::variable<nn::param, ts::f32, ts::shape<128256, 8192>, P<"model">> embedding;
  TESSERA_MODULE(huge, layers, embedding)
};
static_assert(nn::tree_bytes<huge, nn::param, cluster>() / 4 > 69'000'000'000);
static_assert(nn::tree_bytes<huge, nn::param, cluster>() / 4 < 71'000'000'000);
static_assert(nn::tree_bytes_per_device<huge, nn::param, cluster>() < 71'000'000'000);

// Logical names lay a model out by one table.
using layout =
    nn::rules<nn::rule<"embed", none>, nn::rule<"mlp", "model">, nn::rule<"heads", "model">, nn::rule<"heads", "data">>;
static_assert(std::is_same_v<layout::spec<"embed", "mlp">, P<none, "model">>);
static_assert(std::is_same_v<layout::spec<"mlp", "heads">, P<"model", "data">>);
static_assert(std::is_same_v<layout::spec<"mlp", "mlp">, P<"model">>);
using laid_out = ts::nn::linear<16, 8, ts::kernel<layout::spec<"embed", "mlp">>>;
static_assert(nn::leaves<laid_out, cluster>[0].spec == "(None, model)");

using x_type = ts::tensor<ts::f32, ts::shape<4, 16>, P<>, single>;

x_type batch() {
  std::vector<float> host(64);
  ts::random::fill_normal(std::span<float>(host), ts::random::make_key(3), 0);
  return ts::device_put<ts::shape<4, 16>, P<>, single>(host);
}

inline constexpr auto forward = [](auto& model, auto x) { return model(x); };
inline constexpr auto pure_forward = [](auto& state, auto x) {
  auto model = nn::merge(nn::graphdef<one_device>{}, state);
  const auto y = model(x);
  nn::update(state, nn::state(nn::state(model)));
  return y;
};

}  // namespace

TEST_CASE("A module splits into structure and states and merges into another object with the same values") {
  const auto model = ts::init<net, single>(nn::rngs{.params = 0, .dropout = 1});
  const auto [def, params, stats, rest] = nn::split<nn::param, nn::batch_stat, nn::everything_else>(model);
  CHECK(
      shapes_text(nn::nested(nn::to_pure_dict(params))) ==
      "{first: {bias: [8], kernel: [16, 8]}, layers: {0: {bias: [8], kernel: [8, 8]}, 1: {bias: [8], kernel: [8, 8]}}, "
      "norm: {scale: [8]}}");
  CHECK(shapes_text(nn::nested(nn::to_pure_dict(stats))) == "{norm: {mean: [8]}}");
  CHECK(shapes_text(nn::nested(nn::to_pure_dict(rest))) == "{calls: [], drop: {count: [], key: [2]}}");
  auto copy = nn::merge(def, params, stats, rest);
  CHECK(nn::to_pure_dict(copy) == nn::to_pure_dict(model));

  SECTION("the copy changes alone; update writes back") {
    copy(batch());
    CHECK(nn::to_vector(copy.calls) == std::vector{1});
    CHECK(nn::to_vector(model.calls) == std::vector{0});
    auto other = model;
    nn::update(other, nn::state<nn::batch_stat>(copy));
    CHECK(nn::to_vector(other.norm.mean) == nn::to_vector(copy.norm.mean));
    CHECK(nn::to_vector(other.calls) == std::vector{0});
  }
  SECTION("pop takes variables out") {
    const auto popped = nn::pop<step_counter>(copy);
    CHECK(nn::to_pure_dict(popped).size() == 1);
    CHECK_THROWS_WITH(nn::to_vector(copy.calls), Catch::Contains("holds no array"));
  }
  SECTION("a pure dict puts values in by name, or nothing at all") {
    nn::flat_dict dict{{"layers[1].bias", nn::to_pure_dict(model).at("layers[0].bias")}};
    nn::replace_by_pure_dict(copy, dict);
    dict.begin()->second.extents = {2, 4};
    CHECK_THROWS_AS(nn::replace_by_pure_dict(copy, dict), ts::shape_error);
    dict = {{"layers[2].bias", nn::to_pure_dict(model).at("layers[0].bias")}};
    CHECK_THROWS_WITH(nn::replace_by_pure_dict(copy, dict), Catch::Contains("no variable layers[2].bias"));
    CHECK_THROWS_WITH(nn::to_pure_dict(model).at("calls").values<float>(), Catch::Contains("int32"));
  }
}

TEST_CASE("A direct call has the bits of a compiled step and changes the same state") {
  const auto start = ts::init<net, single>(nn::rngs{.params = 0, .dropout = 1});
  auto compiled = start, direct = start, evaluated = start;
  const x_type x = batch();
  const auto by_step = ts::jit<forward>(compiled, x);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(by_step)>, std::remove_cvref_t<decltype(direct(x))>>);
  CHECK(direct(x).to_vector() == by_step.to_vector());
  CHECK(nn::to_pure_dict(direct) == nn::to_pure_dict(compiled));
  CHECK(ts::jit<forward>(compiled, x).to_vector() == direct(x).to_vector());
  CHECK(nn::to_vector(direct.drop.count) == std::vector{2U});

  auto pure = nn::state(start);
  CHECK(ts::call(pure_forward, pure, x).to_vector() == by_step.to_vector());
  CHECK(nn::to_vector(pure.variables.calls) == std::vector{1});

  const auto first = ts::nn::eval_mode(evaluated)(x).to_vector();
  CHECK(ts::nn::eval_mode(evaluated)(x).to_vector() == first);
  nn::eval(evaluated);
  CHECK(evaluated(x).to_vector() == first);
  CHECK(nn::to_vector(evaluated.drop.count) == std::vector{0U});
  CHECK(nn::to_vector(evaluated.calls) == std::vector{3});

  CHECK(ts::call([](auto a) { return ts::sum(ts::relu(a)); }, x).item() > 0);
  CHECK_THROWS_WITH(ts::call([&](auto a) { return start.first(a); }, x), Catch::Contains("TESSERA_MODULE"));
}

namespace {

struct mlp {
  ts::nn::linear<784, 128> dense_0;
  ts::nn::linear<128, 10> dense_1;
  TESSERA_MODULE(mlp, dense_0, dense_1)

  constexpr auto operator()(auto x) const { return dense_1(ts::relu(dense_0(x))); }
};
struct one_layer {
  ts::nn::linear<3, 4> dense;
  TESSERA_MODULE(one_layer, dense)

  constexpr auto operator()(auto x) const { return dense(x); }
};

template <std::int64_t N>
auto ones() {
  return ts::device_put<ts::shape<1, N>, P<>, ts::mesh<>>(std::vector<float>(static_cast<std::size_t>(N), 1.0F));
}

}  // namespace

TEST_CASE("Models start with the published values in the object style and in the functional style") {
  const auto object = ts::init<mlp>(nn::rngs{0});
  CHECK(reference::check("mlp_784_128_10_object_init_logits", object(ones<784>()).to_vector()));
  using pair = nn::functional<mlp>;
  const auto params = pair::init(ts::random::make_key(0));
  const auto logits = ts::call([](const auto& p, auto x) { return pair::apply(p, x); }, params, ones<784>());
  CHECK(reference::check("mlp_784_128_10_functional_init_logits", logits.to_vector()));
  CHECK(pair::apply(params, ones<784>()).to_vector() == logits.to_vector());
  const auto linear = ts::init<one_layer>(nn::rngs{0});
  CHECK(reference::check("linear_3_4_object_init_on_ones", linear(ones<3>()).to_vector()));
}

namespace {

struct normed {
  nn::linear<128, 256> layer_1;
  nn::layer_norm<256> norm;
  TESSERA_MODULE(normed, layer_1, norm)
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
  nn::variable<nn::optimizer_state, ts::i32, ts::shape<>> step;
  TESSERA_MODULE(training_state, params, opt_state, rng_key, step)
};

}  // namespace

TEST_CASE("A training state has the leaves of its parameters, of the optimiser, a key and a step") {
  using model = nn::bound<encoder_decoder, ts::mesh<>>;
  using optimizer = decltype(nn::optimizer<nn::param>(model{}, ts::optim::adam(1e-3)));
  const std::vector<std::size_t> counts{nn::leaf_count<encoder_decoder>(),
                                        nn::leaf_count<typename optimizer::state_type>(),
                                        nn::leaf_count<training_state<optimizer>>()};
  CHECK(reference::check("training_state_leaf_count", counts));
}

namespace {

struct table {
  nn::variable<nn::param, ts::f32, ts::shape<3, 2>, P<>, nn::initializers::ones(), nn::role::embedding> rows;
  TESSERA_MODULE(table, rows)

  constexpr auto operator()(auto one_hot) const { return ts::matmul(one_hot, rows); }
  constexpr auto attend(auto h) const { return ts::matmul(h, ts::transpose(ts::reshard<P<>>(rows))); }
};
struct reader {
  TESSERA_MODULE(reader)
  constexpr auto operator()(const auto& shared, auto h) const { return shared.attend(h); }
};
/// One module owns the table, who else uses it is handed it.
struct tied {
  table embed;
  reader out;
  TESSERA_MODULE(tied, embed, out)

  constexpr auto operator()(auto x) const { return out(embed, embed(x)); }
};
static_assert(nn::leaf_count<tied>() == 1);

}  // namespace

TEST_CASE("A shared module counts once, and its gradient is the sum over its uses") {
  const auto model = ts::init<tied>(nn::rngs{0});
  const auto x = ts::device_put<ts::shape<1, 3>, P<>, ts::mesh<>>(std::vector<float>{1, 2, 4});
  const auto gradient = ts::call(
      [](auto& m, auto in) {
        const auto grads = ts::grad([](auto& each, auto a) { return ts::sum(each(a)); })(m, in);
        return ts::reshard<P<>>(grads.embed.rows);
      },
      model, x);
  // Sum over rows i, j and columns c of x_i W_ic W_jc: each element of row r gets x_r * 3 + (1 + 2 + 4).
  CHECK(gradient.to_vector() == std::vector<float>{10, 10, 13, 13, 19, 19});
}

TEST_CASE("tree_map changes each variable; with the path, as the path says") {
  const auto model = ts::init<one_layer>(nn::rngs{0});
  const auto sums = ts::call(
      [](const auto& m) {
        const auto doubled = nn::tree_map([](const auto& v) { return v * 2; }, m);
        const auto zeroed = nn::tree_map_with_path(
            [](std::string_view p, const auto& v) { return p == "dense.kernel" ? v * 0 : v + 5; }, m);
        return std::tuple(ts::sum(doubled.dense.kernel) / ts::sum(m.dense.kernel), ts::sum(zeroed.dense.kernel),
                          ts::sum(zeroed.dense.bias));
      },
      model);
  CHECK(std::get<0>(sums).item() == 2);
  CHECK(std::get<1>(sums).item() == 0);
  CHECK(std::get<2>(sums).item() == 20);
}

TEST_CASE("one model is evaluated in batches of several sizes, without an optimiser") {
  auto model = ts::init<nn::linear<16, 8>, single>(nn::rngs{0});
  std::vector<float> rows(4 * 16);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 0.1F * static_cast<float>(i % 7);
  const std::vector<float> first(rows.begin(), rows.begin() + 2 * 16);
  const auto four = ts::jit<eval_step>(model, ts::device_put<ts::shape<4, 16>, P<>, single>(rows)).to_vector();
  const auto two = ts::jit<eval_step>(model, ts::device_put<ts::shape<2, 16>, P<>, single>(first)).to_vector();
  CHECK(two == std::vector<float>(four.begin(), four.begin() + 2 * 8));
}
