// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/softmax.hpp>

#include "ops/support.hpp"

TEST_CASE("softmax and log_softmax keep the type, along any dimension, cut or not") {
  STATIC_REQUIRE(TYPE(ts::softmax(by_xy)) == "float32[4@x,8@y]" && TYPE(ts::softmax<0>(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::log_softmax(doubles)) == "float64[4@x,8]" &&
                 TYPE(ts::log_softmax<-2>(doubles)) == "float64[4@x,8]");
}

TEST_CASE("Dimensions that are not there and integers have no softmax") {
  STATIC_REQUIRE(fault<ts::ops::softmax_rule<2>, decltype(by_x)> == message::softmax_axis);
  STATIC_REQUIRE(fault<ts::ops::softmax_rule<-3>, decltype(by_x)> == message::softmax_axis);
  STATIC_REQUIRE(fault<ts::ops::softmax_rule<-1>, decltype(scalar)> == message::softmax_axis);
  STATIC_REQUIRE(fault<ts::ops::softmax_rule<-1>, decltype(ints)> == message::softmax_needs_float);
}
