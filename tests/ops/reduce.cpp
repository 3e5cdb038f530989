// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/reduce.hpp>

#include "ops/support.hpp"

TEST_CASE("A reduction drops the dimensions it names, or all") {
  STATIC_REQUIRE(TYPE(ts::sum(by_xy)) == "float32[]" && TYPE(ts::mean(by_xy)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::sum<0>(by_xy)) == "float32[8@y]" && TYPE(ts::max<-1>(by_xy)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::min<0, -1>(by_xy)) == "float32[]" && TYPE(ts::sum<1>(ints)) == "int32[4@x]");
  STATIC_REQUIRE(TYPE(ts::sum(scalar)) == "float32[]" && TYPE(ts::prod<0>(by_xy)) == "float32[8@y]");
}

TEST_CASE("keepdims leaves extent 1, uncut; out_sharding chooses the cut; both may be given, in any order") {
  STATIC_REQUIRE(TYPE(ts::mean<0>(by_xy, ts::keepdims)) == "float32[1,8@y]" &&
                 TYPE(ts::max(by_xy, ts::keepdims)) == "float32[1,1]");
  STATIC_REQUIRE(TYPE(ts::sum<0>(by_xy, ts::out_sharding<P<"x">>)) == "float32[8@x]");
  STATIC_REQUIRE(TYPE(ts::mean<0>(by_xy, ts::out_sharding<P<axes<"x", "y">>>)) == "float32[8@(x,y)]");
  STATIC_REQUIRE(TYPE(ts::sum<0>(by_xy, ts::keepdims, ts::out_sharding<P<none, "x">>)) == "float32[1,8@x]");
  STATIC_REQUIRE(TYPE(ts::any<0>(by_xy, ts::out_sharding<P<>>, ts::keepdims)) == "bool[1,8]");
}

TEST_CASE("bool counts as numbers in sums, as float32 in means, and stays bool in extrema, all and any") {
  STATIC_REQUIRE(TYPE(ts::sum<1>(bools)) == "int32[4@x]" && TYPE(ts::prod(bools)) == "int32[]");
  STATIC_REQUIRE(TYPE(ts::mean<0>(bools)) == "float32[8]" && TYPE(ts::max<1>(bools)) == "bool[4@x]");
  STATIC_REQUIRE(TYPE(ts::all<1>(bools)) == "bool[4@x]" && TYPE(ts::any(by_xy)) == "bool[]");
  STATIC_REQUIRE(TYPE(ts::count_nonzero<1>(bools)) == "int32[4@x]" && TYPE(ts::count_nonzero(ints)) == "int32[]");
}

template <class OutSpec, class Kind, int... Dims>
constexpr auto rule = ts::ops::reduction_rule<Kind, false, OutSpec, Dims...>;
using ts::graph::op;
using sum_kind = ts::ops::total_kind<op::reduce_sum>;
using max_kind = ts::ops::extremum_kind<op::reduce_max>;

TEST_CASE("Dimensions that are not there, means of integers and maxima of nothing have no type") {
  STATIC_REQUIRE(fault<rule<void, sum_kind, 2>, decltype(by_x)> == message::reduce_axis);
  STATIC_REQUIRE(fault<rule<void, sum_kind, 1, -1>, decltype(by_x)> == message::reduce_axis_twice);
  STATIC_REQUIRE(fault<rule<void, ts::ops::mean_kind>, decltype(ints)> == message::reduce_mean_float);
  using empty = array<ts::f32, shape<0, 8>>;
  STATIC_REQUIRE(fault<rule<void, max_kind, 0>, empty> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<void, ts::ops::mean_kind>, empty> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<void, sum_kind>, empty> == message::none);
  STATIC_REQUIRE(fault<rule<void, max_kind, 1>, empty> == message::none);
  STATIC_REQUIRE(fault<rule<void, ts::ops::logic_kind<op::reduce_min>>, empty> == message::none);
  STATIC_REQUIRE(fault<rule<P<"x", "y">, sum_kind, 0>, decltype(by_x)> == message::spec_too_long);
}
