// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/softmax.hpp>

#include "ops/support.hpp"

TEST_CASE("softmax and log_softmax keep the type, along any dimension, cut or not") {
  static_assert(TYPE(ts::softmax(by_xy)) == "float32[4@x,8@y]" && TYPE(ts::softmax<0>(by_xy)) == "float32[4@x,8@y]");
  static_assert(TYPE(ts::log_softmax(doubles)) == "float64[4@x,8]" && TYPE(ts::log_softmax<-2>(doubles)) == "float64[4@x,8]");
  SUCCEED();
}

TEST_CASE("Dimensions that are not there and integers have no softmax") {
  static_assert(fault<ts::ops::softmax_rule<2>, decltype(by_x)> == message::softmax_axis);
  static_assert(fault<ts::ops::softmax_rule<-3>, decltype(by_x)> == message::softmax_axis);
  static_assert(fault<ts::ops::softmax_rule<-1>, decltype(scalar)> == message::softmax_axis);
  static_assert(fault<ts::ops::softmax_rule<-1>, decltype(ints)> == message::softmax_needs_float);
  SUCCEED();
}
