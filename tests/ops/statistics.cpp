// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/statistics.hpp>

#include "ops/support.hpp"

TEST_CASE("Statistics drop the dimensions they name, with keepdims and out_sharding as sums have them") {
  STATIC_REQUIRE(TYPE(ts::var<0>(by_xy)) == "float32[8@y]" && TYPE(ts::var(by_xy, ts::ddof<1>)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::std<-1>(doubles)) == "float64[4@x]" && TYPE(ts::norm(by_xy)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::std<0>(by_xy, ts::ddof<1>, ts::keepdims)) == "float32[1,8@y]");
  STATIC_REQUIRE(TYPE(ts::logsumexp<1>(by_xy, ts::keepdims, ts::out_sharding<P<"y">>)) == "float32[4@y,1]");
}

template <class Kind, int... Dims>
constexpr auto rule = ts::ops::reduction_rule<Kind, false, void, Dims...>;

TEST_CASE("Statistics of integers, of nothing, and with no degree of freedom have no type") {
  using variance = ts::ops::variance_kind<0, false>;
  using corrected = ts::ops::variance_kind<4, false>;
  STATIC_REQUIRE(fault<rule<variance>, decltype(ints)> == message::reduce_needs_float);
  STATIC_REQUIRE(fault<rule<ts::ops::norm_kind>, decltype(bools)> == message::reduce_needs_float);
  STATIC_REQUIRE(fault<rule<corrected, 0>, decltype(by_x)> == message::reduce_ddof);
  STATIC_REQUIRE(fault<rule<corrected, 1>, decltype(by_x)> == message::none);
  using empty = array<ts::f32, shape<0, 8>>;
  STATIC_REQUIRE(fault<rule<variance, 0>, empty> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<ts::ops::logsumexp_kind, 0>, empty> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<ts::ops::norm_kind>, empty> == message::none);
}
