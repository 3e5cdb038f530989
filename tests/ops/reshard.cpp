// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/reshard.hpp>

#include "ops/support.hpp"

TEST_CASE("reshard gives any legal cut, and only a legal one") {
  STATIC_REQUIRE(TYPE(ts::reshard<P<>>(by_xy)) == "float32[4,8]" &&
                 TYPE(ts::reshard<P<"y", "x">>(by_xy)) == "float32[4@y,8@x]");
  STATIC_REQUIRE(TYPE(ts::reshard<P<none, axes<"x", "y">>>(whole)) == "float32[4,8@(x,y)]");
  STATIC_REQUIRE(fault<ts::ops::reshard_rule<P<axes<"x", "y">>>, decltype(whole)> == message::spec_indivisible);
  STATIC_REQUIRE(fault<ts::ops::reshard_rule<P<"q">>, decltype(whole)> == message::spec_unknown_axis);
  STATIC_REQUIRE(fault<ts::ops::reshard_rule<P<none, none, "x">>, decltype(whole)> == message::spec_too_long);
  STATIC_REQUIRE(fault<ts::ops::reshard_rule<P<"x", "x">>, decltype(whole)> == message::spec_axis_twice);
}
