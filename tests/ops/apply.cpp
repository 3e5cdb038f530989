// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/linear.hpp>
#include <tessera/optim/losses.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/types.hpp>

#include "ops/support.hpp"

#include <concepts>

extern const ts::poison bad;

template <class T>
constexpr bool silent = std::same_as<std::remove_cvref_t<T>, ts::poison>;

TEST_CASE("After an error nothing follows: every operation on its result is silent") {
  STATIC_REQUIRE(silent<decltype(ts::relu(bad))> && silent<decltype(-bad)> && silent<decltype(!bad)>);
  STATIC_REQUIRE(silent<decltype(bad + by_x)> && silent<decltype(by_x + bad)> && silent<decltype(bad + bad)> &&
                 silent<decltype(bad * 2.0)> && silent<decltype(bias + bad)> && silent<decltype(bad < by_x)>);
  STATIC_REQUIRE(silent<decltype(ts::matmul(bad, kernel))> &&
                 silent<decltype(ts::matmul(by_x, bad, ts::out_sharding<P<"x">>))>);
  STATIC_REQUIRE(silent<decltype(ts::sum(bad))> && silent<decltype(ts::mean<0>(bad, ts::keepdims))> &&
                 silent<decltype(ts::max<1>(bad, ts::out_sharding<P<>>))>);
  STATIC_REQUIRE(silent<decltype(ts::reshape<4>(bad))> && silent<decltype(ts::transpose(bad))> &&
                 silent<decltype(ts::broadcast_to<4, 4>(bad))> && silent<decltype(ts::reshard<P<"x">>(bad))>);
  STATIC_REQUIRE(silent<decltype(ts::astype<ts::f32>(bad))> && silent<decltype(ts::one_hot<10>(bad))> &&
                 silent<decltype(ts::softmax(bad))> && silent<decltype(ts::log_softmax<0>(bad))>);
  STATIC_REQUIRE(silent<decltype(ts::where(bad, by_x, by_x))> && silent<decltype(ts::where(bools, bad, 0.0))>);
  STATIC_REQUIRE(silent<decltype(ts::gelu(bad))> && silent<decltype(ts::silu(bad))>);
}

TEST_CASE("Layers and losses of what was refused are silent too") {
  using layer = ts::nn::linear<8, 16>;
  STATIC_REQUIRE(silent<decltype(std::declval<const layer&>()(bad))>);
  STATIC_REQUIRE(silent<decltype(ts::optim::softmax_cross_entropy_with_integer_labels(bad, ints))>);
  STATIC_REQUIRE(silent<decltype(ts::optim::softmax_cross_entropy_with_integer_labels(by_x, bad))>);
}

using cells = ts::mesh<ts::axis<"x", 2>>;

TEST_CASE("The mesh of several operands is the closed one, or all axes that variables name") {
  STATIC_REQUIRE(std::same_as<ts::ops::common_mesh<decltype(by_x), std::remove_cvref_t<decltype(bias)>>, grid>);
  STATIC_REQUIRE(std::same_as<ts::ops::common_mesh<std::remove_cvref_t<decltype(bias)>, double>, ts::open_mesh<"y">>);
  STATIC_REQUIRE(ts::ops::one_mesh<std::remove_cvref_t<decltype(by_x)>, std::remove_cvref_t<decltype(bias)>>());
  STATIC_REQUIRE(!ts::ops::one_mesh<std::remove_cvref_t<decltype(by_x)>, array<ts::f32, shape<8>, P<>, cells>>());
}

TEST_CASE("A variable whose axis the other operand's mesh does not have is refused") {
  constexpr auto rule = ts::ops::elementwise_rule<ts::graph::op::add, ts::ops::wants::numbers>;
  STATIC_REQUIRE(
      ts::ops::rule_on<rule, cells, array<ts::f32, shape<8>, P<>, cells>, std::remove_cvref_t<decltype(bias)>>()
          .failure == message::spec_unknown_axis);
}

TEST_CASE("Outside a step an operation is an exception that says so") {
  const array<ts::f32, shape<8>> nowhere{};
  CHECK_THROWS_AS(ts::relu(nowhere), ts::value_error);
}
