// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/saved_residuals.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/stack.hpp>
#include <tessera/transform/checkpoint.hpp>
#include <tessera/types.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace ts = tessera;
using ts::none, ts::P;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
template <std::int64_t... Extents>
using array = ts::tensor<ts::f32, ts::shape<Extents...>, P<>, ts::mesh<>>;

/// Bytes of what is kept beside arguments.
constexpr std::int64_t kept_bytes(const auto& residuals) {
  std::int64_t bytes = 0;
  for (const ts::saved_residual& r : residuals)
    if (!r.is_argument()) bytes += r.bytes;
  return bytes;
}

inline constexpr auto mean_square = [](auto x) { return ts::mean(ts::square(x)); };
inline constexpr auto block = [](auto x, auto w1, auto w2) {
  return ts::matmul(ts::gelu(ts::checkpoint_name<"wide">(ts::matmul(x, w1))), w2);
};
inline constexpr auto plain = [](auto weights, auto x) {
  const auto& [w1, w2] = weights;
  return mean_square(block(x, w1, w2));
};
template <auto Policy>
inline constexpr auto checkpointed = [](auto weights, auto x) {
  const auto& [w1, w2] = weights;
  return mean_square(ts::checkpoint<Policy>(block)(x, w1, w2));
};
using weight_pair = std::tuple<array<8, 64>, array<64, 8>>;

TEST_CASE("What is elementwise in kept products is not kept, and what nobody reads is not there") {
  CHECK(ts::saved_residuals_text<plain, weight_pair, array<4, 8>>(false) ==
        "f32[64,8] from the argument x1\n"
        "f32[4,8] from the argument x2\n"
        "f32[4,64] output of dot named 'wide'\n"
        "f32[4,8] output of dot\n");
  constexpr auto& list = ts::saved_residuals<plain, weight_pair, array<4, 8>>();
  STATIC_REQUIRE(list.size() == 4);
  STATIC_REQUIRE(list[0].argument == 1);
  STATIC_REQUIRE(list[2].made_by == ts::graph::op::dot);
  STATIC_REQUIRE(list[2].name.view() == "wide");
  STATIC_REQUIRE(list[2].bytes == 4 * 64 * 4);
  STATIC_REQUIRE(list[3].name.view().empty());
}

TEST_CASE("A checkpoint keeps what its policy lets be kept, and the arguments of the region") {
  CHECK(ts::saved_residuals_text<checkpointed<ts::nothing_saveable>, weight_pair, array<4, 8>>(false) ==
        "f32[8,64] from the argument x0\n"
        "f32[64,8] from the argument x1\n"
        "f32[4,8] from the argument x2\n"
        "f32[4,8] output of dot\n");
  CHECK(ts::saved_residuals_text<checkpointed<ts::save_only_these_names<"wide">>, weight_pair, array<4, 8>>(false) ==
        "f32[64,8] from the argument x1\n"
        "f32[4,8] from the argument x2\n"
        "f32[4,8] output of dot\n"
        "f32[4,64] output of dot named 'wide'\n");
}

inline constexpr auto offloading = ts::save_and_offload_only_these_names<ts::names<>, ts::names<"wide">>;
inline constexpr auto offloading_step = [](auto w1, auto w2, auto x) {
  return ts::grad([&](auto v) { return checkpointed<offloading>(std::tuple(v, w2), x); })(w1);
};

TEST_CASE("What waits in host memory says so, and its bytes are known") {
  CHECK(ts::saved_residuals_text<checkpointed<offloading>, weight_pair, array<4, 8>>(false) ==
        "f32[64,8] from the argument x1\n"
        "f32[4,8] from the argument x2\n"
        "f32[4,8] output of dot\n"
        "f32[4,64] output of dot named 'wide', offloaded\n");
  constexpr auto& list = ts::saved_residuals<checkpointed<offloading>, weight_pair, array<4, 8>>();
  STATIC_REQUIRE(list[3].offloaded);
  STATIC_REQUIRE_FALSE(list[2].offloaded);
  using program = ts::lowered<offloading_step, array<8, 64>, array<64, 8>, array<4, 8>>;
  STATIC_REQUIRE(program::memory_analysis().host_temp_size_in_bytes == 4 * 64 * 4);
  STATIC_REQUIRE(program::memory_analysis().bytes_to_host == 4 * 64 * 4);
  STATIC_REQUIRE(program::memory_analysis().bytes_from_host == 4 * 64 * 4);
  CHECK(program::text().find("host+0 = to_host (") != std::string_view::npos);
  CHECK(program::text().find("host 1024 bytes a device\n") != std::string_view::npos);
}

TEST_CASE("A value that is kept anyway is no residual twice, and a constant is none") {
  static constexpr auto loss = [](auto w, auto x) {
    auto y = ts::matmul(x, w);
    return ts::sum(y * y * 3.0 + ts::exp(y));
  };
  CHECK(ts::saved_residuals_text<loss, array<8, 8>, array<4, 8>>(false) ==
        "f32[4,8] from the argument x1\n"
        "f32[4,8] output of dot\n");
}

TEST_CASE("A linear loss keeps nothing that it makes") {
  static constexpr auto loss = [](auto w, auto x) { return ts::sum(ts::matmul(x, w)); };
  STATIC_REQUIRE(kept_bytes(ts::saved_residuals<loss, array<8, 8>, array<4, 8>>()) == 0);
  STATIC_REQUIRE(ts::saved_residuals<loss, array<8, 8>, array<4, 8>>().size() == 1);
}

template <std::int64_t D>
struct layer {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<D, D>, P<>> kernel;
  TESSERA_MODULE(layer, kernel)
  constexpr auto operator()(auto x) const { return ts::tanh(ts::checkpoint_name<"pre">(ts::matmul(x, kernel))); }
};
inline constexpr auto call = [](auto& each, auto x) { return each(x); };
inline constexpr auto call_checkpointed = [](auto& each, auto x) { return ts::checkpoint(each)(x); };
template <auto Call>
inline constexpr auto stack_loss = [](auto& layers, auto x) { return mean_square(layers.apply(Call, x)); };
using stack = ts::nn::bound<ts::nn::stack<5, layer<8>>, ts::mesh<>>;

TEST_CASE("What a scan keeps of its trips is one residual each, known by what the body makes") {
  CHECK(ts::saved_residuals_text<stack_loss<call>, stack, array<4, 8>>(false) ==
        "f32[5,8,8] from the argument kernel\n"
        "f32[4,8] output of scan: tanh\n"
        "f32[5,4,8] output of scan: carry\n"
        "f32[5,4,8] output of scan: dot named 'pre'\n");
  CHECK(ts::saved_residuals_text<stack_loss<call_checkpointed>, stack, array<4, 8>>(false) ==
        "f32[5,8,8] from the argument kernel\n"
        "f32[4,8] output of scan: tanh\n"
        "f32[5,4,8] output of scan: carry\n");
  constexpr auto& list = ts::saved_residuals<stack_loss<call>, stack, array<4, 8>>();
  STATIC_REQUIRE(list[3].body == ts::graph::control_kind::scan);
  STATIC_REQUIRE(list[3].trips == 5);
  STATIC_REQUIRE(list[1].trips == 0);  // the last carry
  STATIC_REQUIRE_FALSE(list[0].in_body());
}

struct network {
  ts::nn::linear<8, 64, ts::kernel<P<none, "model">>> up;
  ts::nn::linear<64, 8, ts::kernel<P<"model">>> down;
  TESSERA_MODULE(network, up, down)
  constexpr auto operator()(auto x) const { return down(ts::relu(up(x)), ts::out_sharding<P<"data">>); }
};
inline constexpr auto network_loss = [](auto& model, auto x, auto y) { return mean_square(model(x) - y); };
using model = ts::nn::bound<network, cluster>;
using batch = ts::tensor<ts::f32, ts::shape<16, 8>, P<"data">, cluster>;

TEST_CASE("Variables go by their path, types show how they are cut, bytes are those of a device") {
  const std::string text = ts::saved_residuals_text<network_loss, model, batch, batch>(false);
  CHECK(text.find("f32[64@model,8] from the argument down.kernel\n") != text.npos);
  CHECK(text.find("f32[16@data,8] from the argument x1\n") != text.npos);
  CHECK(text.find("f32[16@data,64@model] output of dot\n") != text.npos);
  CHECK(text.find("up.kernel") == text.npos);
  STATIC_REQUIRE(kept_bytes(ts::saved_residuals<network_loss, model, batch, batch>()) ==
                 4 * (8 * 16) + 4 * (8 * 8));  // before relu, and the result
}

TEST_CASE("Of a second module paths come with its place, and arrays of many kinds have short names") {
  static constexpr auto loss = [](auto x, auto& frozen) {
    return ts::sum(ts::where(x > 0.0, frozen(x), ts::square(frozen(x))));
  };
  using pair = ts::tensor<ts::f32, ts::shape<16, 8>, P<"data">, cluster>;
  const std::string text = ts::saved_residuals_text<loss, pair, const model>(false);
  CHECK(text.find("from the argument x1.up.kernel\n") != text.npos);
  CHECK(ts::analysis::short_type(ts::scalar_aval(ts::bf16), {}) == "bf16[]");
  CHECK(ts::analysis::short_type(ts::scalar_aval(ts::bool_), {}) == "bool[]");
  CHECK(ts::analysis::short_type(ts::scalar_aval(ts::i32), {}) == "i32[]");
}

inline constexpr int first_line = __LINE__;
inline constexpr auto of_many_kinds = [](auto w, auto x) {
  auto h = ts::matmul(x, w);
  auto largest = ts::max<1>(h);
  auto p = ts::softmax(ts::checkpoint_name<"hidden">(h * h));
  return ts::sum(ts::matmul(p, w)) * ts::sum(ts::exp(largest));
};

TEST_CASE("A residual knows the line it is made in, or the nearest one that is known") {
  constexpr auto& list = ts::saved_residuals<of_many_kinds, array<8, 8>, array<4, 8>>();
  const auto line_of = [&](ts::graph::op code) {
    for (const ts::saved_residual& r : list)
      if (r.made_by == code && !r.is_argument()) return std::pair(r.where, r.line - first_line);
    return std::pair(ts::line_relation::unknown, 0);
  };
  CHECK(line_of(ts::graph::op::dot) == std::pair(ts::line_relation::at, 2));
  CHECK(line_of(ts::graph::op::reduce_max) == std::pair(ts::line_relation::before, 4));
  CHECK(line_of(ts::graph::op::reduce_sum) == std::pair(ts::line_relation::after, 5));
  const std::string text = ts::saved_residuals_text<of_many_kinds, array<8, 8>, array<4, 8>>();
  CHECK(text.find("f32[4,8] output of dot at saved_residuals.cpp:" + std::to_string(first_line + 2) + "\n") !=
        text.npos);
  CHECK(text.find("f32[4] output of reduce_max before saved_residuals.cpp:" + std::to_string(first_line + 4) + "\n") !=
        text.npos);

  constexpr auto& layers = ts::saved_residuals<stack_loss<call>, stack, array<4, 8>>();
  STATIC_REQUIRE(layers[3].where == ts::line_relation::at);       // in the body of a scan
  STATIC_REQUIRE(layers[2].where == ts::line_relation::unknown);  // what it carries
  constexpr auto& dense = ts::saved_residuals<network_loss, model, batch, batch>();
  STATIC_REQUIRE(std::string_view(dense.back().file).ends_with("saved_residuals.cpp"));  // where the layer is called
}
