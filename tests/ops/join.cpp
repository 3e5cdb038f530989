// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/join.hpp>

#include "ops/support.hpp"

using ts::padding;

template <padding... Entries>
inline constexpr auto& pad_rule = ts::ops::pad_rule<void, Entries...>;
template <int Axis, bool Stack = false>
inline constexpr auto& join_rule = ts::ops::concatenate_rule<Axis, Stack, void>;

TEST_CASE("Padding keeps the cuts of dimensions it leaves alone; a cut one needs out_sharding") {
  STATIC_REQUIRE(TYPE(ts::pad<padding{}, padding{1, 2, 1}>(by_x, 0)) == "float32[4@x,18]");
  STATIC_REQUIRE(TYPE(ts::pad<padding{-1, -1}>(row)) == "float32[6]");
  STATIC_REQUIRE(fault<pad_rule<padding{0, 2}>, decltype(by_x), int> == message::layout_sharding);
  STATIC_REQUIRE(TYPE(ts::pad<padding{0, 2}>(by_x, 0, ts::out_sharding<P<"x">>)) == "float32[6@x,8]");
  STATIC_REQUIRE(fault<pad_rule<padding{}, padding{}, padding{}>, decltype(by_x), int> == message::pad_entries);
  STATIC_REQUIRE(fault<pad_rule<padding{-5, 0}>, decltype(whole), int> == message::pad_extent);
  STATIC_REQUIRE(fault<pad_rule<padding{0, 0, -1}>, decltype(whole), int> == message::pad_interior);
  STATIC_REQUIRE(fault<pad_rule<padding{1, 1}>, decltype(whole), decltype(row)> == message::pad_scalar);
  STATIC_REQUIRE(fault<pad_rule<padding{1, 1}>, decltype(ints), decltype(scalar)> == message::pad_dtype);
}

TEST_CASE("Arrays that are put together are cut alike, and along the dimension not at all") {
  STATIC_REQUIRE(TYPE(ts::concatenate<1>(by_x, by_x)) == "float32[4@x,16]");
  STATIC_REQUIRE(TYPE(ts::concatenate<0>(by_x)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::stack<0>(by_xy, by_xy, by_xy)) == "float32[3,4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::stack<-1>(by_x, by_x)) == "float32[4@x,8,2]");
  STATIC_REQUIRE(fault<join_rule<1>, decltype(by_x), decltype(whole)> == message::concatenate_sharding);
  STATIC_REQUIRE(fault<join_rule<0>, decltype(by_x), decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(TYPE(ts::concatenate<0>(by_x, whole, ts::out_sharding<P<"x">>)) == "float32[8@x,8]");
  STATIC_REQUIRE(TYPE(ts::stack(by_x, whole, ts::out_sharding<P<"x", none, "y">>)) == "float32[2@x,4,8@y]");
}

TEST_CASE("Arrays of different dtypes, ranks or other extents cannot be put together") {
  STATIC_REQUIRE(fault<join_rule<1>, decltype(by_x), decltype(ints)> == message::concatenate_dtype);
  STATIC_REQUIRE(fault<join_rule<0>, decltype(whole), decltype(row)> == message::concatenate_shape);
  STATIC_REQUIRE(fault<join_rule<0, true>, decltype(whole), decltype(row)> == message::concatenate_shape);
  STATIC_REQUIRE(fault<join_rule<2>, decltype(whole), decltype(whole)> == message::shape_no_dimension);
  STATIC_REQUIRE(fault<join_rule<3, true>, decltype(whole), decltype(whole)> == message::shape_no_dimension);
}
