// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/ops/reduce.hpp>

#include <catch2/catch.hpp>

#include <type_traits>

namespace ts = tessera;
using ts::none, ts::P;

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

struct pair_of_layers {
  ts::nn::linear<8, 16, ts::kernel<P<none, "model">>> up;
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4, 8>> table;
  TESSERA_MODULE(pair_of_layers, up, table)
};

inline constexpr auto apply_to_input = [](auto& m, auto x) { return m.up(x); };
inline constexpr auto apply_to_variable = [](auto& m, auto x) { return m.up(m.table) + ts::sum(x); };

using model = ts::nn::bound<pair_of_layers, cluster>;
using input = ts::tensor<ts::f32, ts::shape<4, 8>, P<"data">, cluster>;

template <const auto& F>
constexpr std::string_view result_text() {
  return ts::type_text<typename ts::lowered<F, model, input>::traced::result_type>();
}

}  // namespace

TEST_CASE("a bias is cut as the output dimension of its kernel unless told otherwise") {
  using follows = ts::nn::linear<8, 16, ts::kernel<P<none, "model">>>;
  using told = ts::nn::linear<8, 16, ts::kernel<P<none, "model">>, ts::bias<P<>>>;
  using rows = ts::nn::linear<8, 16, ts::kernel<P<"model", none>>>;
  STATIC_REQUIRE(std::is_same_v<follows::bias_spec, P<"model">>);
  STATIC_REQUIRE(std::is_same_v<told::bias_spec, P<>>);
  STATIC_REQUIRE(std::is_same_v<rows::bias_spec, P<>>);
}

TEST_CASE("a layer takes traced arrays and variables alike") {
  STATIC_REQUIRE(result_text<apply_to_input>() == "float32[4@data,16@model]");
  STATIC_REQUIRE(result_text<apply_to_variable>() == "float32[4,16@model]");
}
