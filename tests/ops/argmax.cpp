// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/argmax.hpp>

#include "ops/support.hpp"

TEST_CASE("argmax and argmin give int32 and drop one dimension, or all") {
  STATIC_REQUIRE(TYPE(ts::argmax<0>(by_xy)) == "int32[8@y]" && TYPE(ts::argmin<-1>(by_xy)) == "int32[4@x]");
  STATIC_REQUIRE(TYPE(ts::argmax(by_xy)) == "int32[]" && TYPE(ts::argmax<1>(bools)) == "int32[4@x]");
  STATIC_REQUIRE(TYPE(ts::argmax<1>(by_xy, ts::keepdims, ts::out_sharding<P<"y">>)) == "int32[4@y,1]");
}

template <int... Dims>
constexpr auto rule = ts::ops::reduction_rule<ts::ops::position_kind<ts::graph::op::reduce_max>, false, void, Dims...>;

TEST_CASE("Positions in nothing, and those that no int32 holds, have no type") {
  STATIC_REQUIRE(fault<rule<0>, array<ts::f32, shape<0, 8>>> == message::reduce_empty);
  STATIC_REQUIRE(fault<rule<>, array<ts::f32, shape<65536, 65536>>> == message::reduce_index);
  STATIC_REQUIRE(fault<rule<0>, array<ts::f32, shape<65536, 65536>>> == message::none);
  STATIC_REQUIRE(fault<rule<2>, decltype(by_x)> == message::reduce_axis);
}
