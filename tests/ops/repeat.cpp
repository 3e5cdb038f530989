// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/repeat.hpp>

#include "ops/support.hpp"

extern const array<ts::f32, shape<1, 1, 1, 1, 1, 1, 1, 2>> eight_dims;

template <std::int64_t... Repetitions>
inline constexpr auto& tile_rule = ts::ops::tile_rule<void, Repetitions...>;

TEST_CASE("Repeated dimensions grow, the others keep their cuts") {
  STATIC_REQUIRE(TYPE(ts::repeat<3, 1>(by_x)) == "float32[4@x,24]" && TYPE(ts::repeat<0>(row)) == "float32[0]");
  STATIC_REQUIRE(TYPE(ts::tile<1, 2>(by_x)) == "float32[4@x,16]" && TYPE(ts::tile<2>(by_x)) == "float32[4@x,16]");
  STATIC_REQUIRE(TYPE(ts::tile<2, 1, 1>(by_xy)) == "float32[2,4@x,8@y]" &&
                 TYPE(ts::tile<>(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::roll<3, 1>(by_x)) == "float32[4@x,8]" && TYPE(ts::roll<8, 0>(by_x)) == "float32[4@x,8]");
}

TEST_CASE("A cut dimension is repeated or rolled only with out_sharding") {
  STATIC_REQUIRE(fault<ts::ops::repeat_rule<2, 0, void>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(fault<tile_rule<2, 1>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(fault<ts::ops::roll_rule<1, 0, void>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(TYPE(ts::repeat<2>(by_x, ts::out_sharding<P<"x">>)) == "float32[8@x,8]");
  STATIC_REQUIRE(TYPE(ts::tile<2, 1>(by_x, ts::out_sharding<P<>>)) == "float32[8,8]");
  STATIC_REQUIRE(TYPE(ts::roll<1, 0>(by_x, ts::out_sharding<P<"x">>)) == "float32[4@x,8]");
}

extern const array<ts::i32, shape<>> shift;
TEST_CASE("A roll by a run-time shift keeps the type of an uncut dimension") {
  STATIC_REQUIRE(TYPE(ts::roll<-1>(by_x, shift)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::roll<0>(by_x, shift, ts::out_sharding<P<none, "y">>)) == "float32[4,8@y]");
  STATIC_REQUIRE(fault<ts::ops::roll_by_rule<0, void>, decltype(by_x), decltype(shift)> == message::layout_sharding);
  STATIC_REQUIRE(fault<ts::ops::roll_by_rule<1, void>, decltype(by_x), decltype(row)> == message::roll_shift);
}

TEST_CASE("Dimensions that are not there and negative counts have no type") {
  STATIC_REQUIRE(fault<ts::ops::repeat_rule<2, 2, void>, decltype(by_x)> == message::shape_no_dimension);
  STATIC_REQUIRE(fault<ts::ops::repeat_rule<-1, 1, void>, decltype(by_x)> == message::shape_extent);
  STATIC_REQUIRE(fault<ts::ops::repeat_rule<2, 7, void>, decltype(eight_dims)> == message::shape_rank);
  STATIC_REQUIRE(fault<tile_rule<-1>, decltype(by_x)> == message::shape_extent);
  STATIC_REQUIRE(fault<tile_rule<1, 1, 1, 1, 1, 1, 1, 1, 1>, decltype(row)> == message::shape_rank);
  STATIC_REQUIRE(fault<ts::ops::roll_rule<1, -3, void>, decltype(by_x)> == message::shape_no_dimension);
}
