// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/activations.hpp>
#include <tessera/ops/elementwise.hpp>

#include "ops/support.hpp"

TEST_CASE("A unary operation keeps the type") {
  STATIC_REQUIRE(TYPE(ts::relu(by_xy)) == "float32[4@x,8@y]" && TYPE(ts::exp(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::tanh(doubles)) == "float64[4@x,8]" && TYPE(-ints) == "int32[4@x,8]" &&
                 TYPE(!bools) == "bool[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::abs(ints)) == "int32[4@x,8]" && TYPE(ts::stop_gradient(bools)) == "bool[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::silu(by_x)) == "float32[4@x,8]" && TYPE(ts::gelu(by_x)) == "float32[4@x,8]");
}

TEST_CASE("A binary operation joins extents and cuts") {
  STATIC_REQUIRE(TYPE(by_x + row_y) == "float32[4@x,8@y]" && TYPE(row_y + by_x) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(by_x * whole) == "float32[4@x,8]" && TYPE(scalar - by_xy) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::maximum(whole, row_y)) == "float32[4,8@y]" &&
                 TYPE(ts::power(by_x, scalar)) == "float32[4@x,8]");
}

TEST_CASE("A number takes the dtype of the array beside it") {
  STATIC_REQUIRE(TYPE(by_x * 2) == "float32[4@x,8]" && TYPE(1 / by_x) == "float32[4@x,8]" &&
                 TYPE(doubles + 0.5F) == "float64[4@x,8]");
  STATIC_REQUIRE(TYPE(ints * 2) == "int32[4@x,8]");
}

TEST_CASE("A comparison gives bool, cut as its operands") {
  STATIC_REQUIRE(TYPE(by_x < row_y) == "bool[4@x,8@y]" && TYPE(ints == 3) == "bool[4@x,8]");
  STATIC_REQUIRE(TYPE(bools && (by_x > 0.0)) == "bool[4@x,8]" && TYPE(bools || true) == "bool[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::not_equal(bools, true)) == "bool[4@x,8]");
}

TEST_CASE("A variable stands where an array does, on the mesh it meets") {
  STATIC_REQUIRE(TYPE(by_x + bias) == "float32[4@x,8@y]" && TYPE(ts::square(bias) * by_x) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(bias * 2.0) == "float32[8@y]");
}

template <ts::graph::op Code, ts::ops::wants What>
constexpr auto rule = ts::ops::elementwise_rule<Code, What>;
using ts::graph::op;
using ts::ops::wants;

TEST_CASE("Wrong dtypes and conflicting cuts have no type") {
  STATIC_REQUIRE(fault<rule<op::add, wants::numbers>, decltype(by_x), decltype(doubles)> == message::elementwise_dtype);
  STATIC_REQUIRE(fault<rule<op::add, wants::numbers>, decltype(ints), double> == message::elementwise_dtype);
  STATIC_REQUIRE(fault<rule<op::add, wants::numbers>, decltype(bools), decltype(bools)> ==
                 message::elementwise_needs_number);
  STATIC_REQUIRE(fault<rule<op::exp, wants::floats>, decltype(ints)> == message::elementwise_needs_float);
  STATIC_REQUIRE(fault<rule<op::logical_and, wants::bools>, decltype(ints), decltype(ints)> ==
                 message::elementwise_needs_bool);
  using other = array<ts::f32, shape<4, 8>, P<none, "x">>;
  STATIC_REQUIRE(fault<rule<op::add, wants::numbers>, decltype(by_x), other> == message::elementwise_duplicate);
  STATIC_REQUIRE(fault<rule<op::add, wants::numbers>, array<ts::f32, shape<8>, P<"x">>, decltype(bias)> ==
                 message::elementwise_sharding);
}
