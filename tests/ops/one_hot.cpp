// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/one_hot.hpp>

#include "ops/support.hpp"

TEST_CASE("one_hot adds an uncut dimension of classes") {
  STATIC_REQUIRE(TYPE(ts::one_hot<10>(ints)) == "float32[4@x,8,10]" &&
                 TYPE(ts::one_hot<3, ts::i32>(ints)) == "int32[4@x,8,3]");
  STATIC_REQUIRE(fault<ts::ops::one_hot_rule<10, ts::f32>, decltype(by_x)> == message::one_hot_dtype);
  STATIC_REQUIRE(fault<ts::ops::one_hot_rule<-1, ts::f32>, decltype(ints)> == message::shape_extent);
  STATIC_REQUIRE(fault<ts::ops::one_hot_rule<2, ts::f32>, array<ts::i32, shape<1, 1, 1, 1, 1, 1, 1, 1>>> ==
                 message::shape_rank);
}
