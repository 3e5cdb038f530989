// SPDX-License-Identifier: Apache-2.0
// Types of the loss for labels that are probabilities.
#include <tessera/optim/losses.hpp>

#include "ops/support.hpp"

TEST_CASE("Soft labels give one loss a row, cut as the rows are") {
  STATIC_REQUIRE(TYPE(ts::optim::softmax_cross_entropy(by_xy, by_xy)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::optim::softmax_cross_entropy(by_x, row)) == "float32[4@x]");
}

TEST_CASE("Labels of another element type or shape have no loss") {
  constexpr auto rule = ts::optim::soft_cross_entropy_rule;
  STATIC_REQUIRE(fault<rule, decltype(by_x), decltype(ints)> == message::softmax_needs_float);
  STATIC_REQUIRE(fault<rule, decltype(by_x), decltype(doubles)> == message::elementwise_dtype);
  STATIC_REQUIRE(fault<rule, decltype(row), decltype(by_x)> == message::elementwise_shape);
  STATIC_REQUIRE(fault<rule, decltype(scalar), decltype(scalar)> == message::cross_entropy_classes);
}
