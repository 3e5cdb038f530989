// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/activations.hpp>
#include <tessera/ops/bitwise.hpp>
#include <tessera/ops/clamp.hpp>
#include <tessera/ops/math.hpp>

#include "ops/support.hpp"

TEST_CASE("Functions of elements keep the type; tests of them give bool") {
  STATIC_REQUIRE(TYPE(ts::expm1(by_xy)) == "float32[4@x,8@y]" && TYPE(ts::round(doubles)) == "float64[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::atan2(by_x, row_y)) == "float32[4@x,8@y]" && TYPE(ts::reciprocal(by_x)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::isnan(by_x)) == "bool[4@x,8]" && TYPE(ts::isfinite(doubles)) == "bool[4@x,8]");
  STATIC_REQUIRE(TYPE(ints % 3) == "int32[4@x,8]" && TYPE(ts::floor_divide(by_x, 2.0)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::logaddexp(by_x, row_y)) == "float32[4@x,8@y]");
}

TEST_CASE("Bits of integers combine and shift; bool has an exclusive or") {
  STATIC_REQUIRE(TYPE((ints & 7) | (~ints ^ (ints << 2)) | (ints >> 1)) == "int32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::logical_xor(bools, bools)) == "bool[4@x,8]");
}

TEST_CASE("clamp has the type of what is clamped") {
  STATIC_REQUIRE(TYPE(ts::clamp(0, by_x, 1)) == "float32[4@x,8]" && TYPE(ts::clip(by_x, whole, 1)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::clamp(by_x, by_x, by_x)) == "float32[4@x,8]" &&
                 TYPE(ts::clamp(-3, ints, 3)) == "int32[4@x,8]");
}

TEST_CASE("Activations keep the type") {
  STATIC_REQUIRE(TYPE(ts::softplus(by_x)) == "float32[4@x,8]" && TYPE(ts::log_sigmoid(doubles)) == "float64[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::elu(by_x, 0.5)) == "float32[4@x,8]" && TYPE(ts::leaky_relu(by_x)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::gelu_exact(by_x)) == "float32[4@x,8]" && TYPE(ts::relu6(by_x)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::hard_tanh(doubles)) == "float64[4@x,8]");
}

using ts::graph::op;
using ts::ops::wants;

TEST_CASE("Operands of other element types have no type") {
  STATIC_REQUIRE(fault<ts::ops::elementwise_rule<op::floor, wants::floats>, decltype(ints)> ==
                 message::elementwise_needs_float);
  STATIC_REQUIRE(fault<ts::ops::elementwise_rule<op::bit_and, wants::integers>, decltype(by_x), decltype(by_x)> ==
                 message::elementwise_needs_integer);
  STATIC_REQUIRE(fault<ts::ops::elementwise_rule<op::bit_not, wants::integers>, decltype(bools)> ==
                 message::elementwise_needs_integer);
  STATIC_REQUIRE(fault<ts::ops::float_test_rule, decltype(ints)> == message::elementwise_needs_float);
  STATIC_REQUIRE(fault<ts::ops::clamp_rule, decltype(scalar), decltype(bools), decltype(scalar)> ==
                 message::elementwise_needs_number);
  STATIC_REQUIRE(fault<ts::ops::clamp_rule, decltype(scalar), decltype(doubles), decltype(scalar)> ==
                 message::elementwise_dtype);
  STATIC_REQUIRE(fault<ts::ops::clamp_rule, decltype(row), decltype(by_x), decltype(scalar)> ==
                 message::elementwise_shape);
  STATIC_REQUIRE(fault<ts::ops::clamp_rule, decltype(by_x), decltype(whole), decltype(scalar)> ==
                 message::elementwise_sharding);
}
