// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/reduce.hpp>

#include "ops/support.hpp"

TEST_CASE("A reduction drops the dimensions it names, or all") {
  STATIC_REQUIRE(TYPE(ts::sum(by_xy)) == "float32[]" && TYPE(ts::mean(by_xy)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::sum<0>(by_xy)) == "float32[8@y]" && TYPE(ts::max<-1>(by_xy)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::min<0, -1>(by_xy)) == "float32[]" && TYPE(ts::sum<1>(ints)) == "int32[4@x]");
  STATIC_REQUIRE(TYPE(ts::sum(scalar)) == "float32[]");
}

TEST_CASE("keepdims leaves extent 1, uncut; out_sharding chooses the cut") {
  STATIC_REQUIRE(TYPE(ts::mean<0>(by_xy, ts::keepdims)) == "float32[1,8@y]" &&
                 TYPE(ts::max(by_xy, ts::keepdims)) == "float32[1,1]");
  STATIC_REQUIRE(TYPE(ts::sum<0>(by_xy, ts::out_sharding<P<"x">>)) == "float32[8@x]");
  STATIC_REQUIRE(TYPE(ts::mean<0>(by_xy, ts::out_sharding<P<axes<"x", "y">>>)) == "float32[8@(x,y)]");
}

template <class OutSpec, ts::graph::op Code, bool Mean, int... Dims>
constexpr auto rule = ts::ops::reduce_rule<Code, false, OutSpec, Mean, Dims...>;
using ts::graph::op;

TEST_CASE("Dimensions that are not there, bool, means of integers and maxima of nothing have no type") {
  STATIC_REQUIRE(fault<rule<void, op::reduce_sum, false, 2>, decltype(by_x)> == message::reduce_axis);
  STATIC_REQUIRE(fault<rule<void, op::reduce_sum, false, 1, -1>, decltype(by_x)> == message::reduce_axis_twice);
  STATIC_REQUIRE(fault<rule<void, op::reduce_sum, false>, decltype(bools)> == message::reduce_needs_number);
  STATIC_REQUIRE(fault<rule<void, op::reduce_sum, true>, decltype(ints)> == message::reduce_mean_float);
  using empty = array<ts::f32, shape<0, 8>>;
  STATIC_REQUIRE(fault<rule<void, op::reduce_max, false, 0>, empty> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<void, op::reduce_sum, true>, empty> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<void, op::reduce_sum, false>, empty> == message::none);
  STATIC_REQUIRE(fault<rule<void, op::reduce_max, false, 1>, empty> == message::none);
  STATIC_REQUIRE(fault<rule<P<"x", "y">, op::reduce_sum, false, 0>, decltype(by_x)> == message::spec_too_long);
}
