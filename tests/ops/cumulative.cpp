// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/cumulative.hpp>
#include <tessera/ops/sort.hpp>

#include "ops/support.hpp"

TEST_CASE("Running sums and their like keep the type; bool counts as int32") {
  STATIC_REQUIRE(TYPE(ts::cumsum<1>(by_x)) == "float32[4@x,8]" && TYPE(ts::cumprod<-1>(ints)) == "int32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::cumsum<1>(bools)) == "int32[4@x,8]" && TYPE(ts::cummax<0>(row)) == "float32[8]");
  STATIC_REQUIRE(TYPE(ts::cummin<1>(by_x, ts::reverse)) == "float32[4@x,8]" &&
                 TYPE(ts::cumlogsumexp<1>(doubles)) == "float64[4@x,8]");
}

TEST_CASE("Without a dimension a running sum is over all elements, which no axis cuts") {
  STATIC_REQUIRE(TYPE(ts::cumsum(whole)) == "float32[32]" && TYPE(ts::cumprod(scalar, ts::reverse)) == "float32[1]");
  STATIC_REQUIRE(fault<ts::ops::flat_cumulative_rule<ts::graph::running::sum>, decltype(by_x)> ==
                 message::cumulative_cut);
}

TEST_CASE("argsort gives int32 of the same extents and cuts") {
  STATIC_REQUIRE(TYPE(ts::argsort(by_x)) == "int32[4@x,8]" && TYPE(ts::argsort<0>(row)) == "int32[8]");
  STATIC_REQUIRE(TYPE(ts::argsort(bools, ts::descending)) == "int32[4@x,8]");
}

TEST_CASE("sort keeps the type; top_k gives values and positions, as many as were asked for") {
  STATIC_REQUIRE(TYPE(ts::sort(by_x)) == "float32[4@x,8]" && TYPE(ts::sort<0>(row, ts::descending)) == "float32[8]");
  STATIC_REQUIRE(TYPE(ts::top_k<3>(by_x).first) == "float32[4@x,3]" &&
                 TYPE(ts::top_k<3>(by_x).second) == "int32[4@x,3]");
  STATIC_REQUIRE(TYPE(ts::sort(bools)) == "bool[4@x,8]" && TYPE(ts::top_k<2, 0>(whole).first) == "float32[2,8]");
}

using ts::graph::running;

TEST_CASE("Dimensions that are cut or not there have no order and no running sum") {
  STATIC_REQUIRE(fault<ts::ops::cumulative_rule<running::sum, 0>, decltype(by_x)> == message::cumulative_cut);
  STATIC_REQUIRE(fault<ts::ops::cumulative_rule<running::sum, 2>, decltype(by_x)> == message::cumulative_axis);
  STATIC_REQUIRE(fault<ts::ops::cumulative_rule<running::logsumexp, 1>, decltype(ints)> ==
                 message::elementwise_needs_float);
  STATIC_REQUIRE(fault<ts::ops::argsort_rule<0, -1>, decltype(by_x)> == message::sort_cut);
  STATIC_REQUIRE(fault<ts::ops::argsort_rule<-3, -1>, decltype(by_x)> == message::sort_axis);
  STATIC_REQUIRE(fault<ts::ops::argsort_rule<1, 9>, decltype(by_x)> == message::sort_count);
  STATIC_REQUIRE(fault<ts::ops::argsort_rule<1, 8>, decltype(by_x)> == message::none);
}
