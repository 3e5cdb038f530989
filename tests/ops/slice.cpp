// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/slice.hpp>

#include "ops/support.hpp"

using ts::range;

template <ts::slice_entry... Entries>
inline constexpr auto& rule = ts::ops::slice_rule<&ts::ops::plan_slices<Entries...>, void>;

TEST_CASE("A slice keeps the cuts of dimensions it takes whole") {
  STATIC_REQUIRE(TYPE(ts::slice<none, range{0, 3}>(by_x)) == "float32[4@x,3]");
  STATIC_REQUIRE(TYPE(ts::slice<none, 3>(by_x)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::slice<range{0, 4}, range{none, none, -2}>(by_x)) == "float32[4@x,4]");
  STATIC_REQUIRE(TYPE(ts::slice<range{}, none>(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::slice<0, -1>(whole)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::slice<range{2, 1}>(whole)) == "float32[0,8]");
  STATIC_REQUIRE(TYPE(ts::flip<1>(by_x)) == "float32[4@x,8]" && TYPE(ts::flip(row)) == "float32[8]");
}

TEST_CASE("A part of a cut dimension needs out_sharding, which cuts the result in any way") {
  STATIC_REQUIRE(fault<rule<range{0, 2}>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(fault<rule<0>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(fault<rule<0, 0>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(fault<ts::ops::slice_rule<&ts::ops::plan_flip<0>, void>, decltype(by_x)> == message::layout_sharding);
  STATIC_REQUIRE(TYPE(ts::slice<range{0, 2}>(by_x, ts::out_sharding<P<"x">>)) == "float32[2@x,8]");
  STATIC_REQUIRE(TYPE(ts::slice<0>(by_x, ts::out_sharding<P<"x">>)) == "float32[8@x]");
  STATIC_REQUIRE(TYPE(ts::flip<0>(by_xy, ts::out_sharding<P<none, "y">>)) == "float32[4,8@y]");
}

TEST_CASE("A split gives one array a part") {
  STATIC_REQUIRE(std::tuple_size_v<decltype(ts::split<-1, 4>(by_x))> == 4);
  STATIC_REQUIRE(TYPE(std::get<3>(ts::split<-1, 4>(by_x))) == "float32[4@x,2]");
  STATIC_REQUIRE(TYPE(std::get<1>(ts::split<1, 5, 0, 3>(by_x))) == "float32[4@x,0]");
  STATIC_REQUIRE(TYPE(std::get<0>(ts::split<0, 2>(by_x, ts::out_sharding<P<"x">>))) == "float32[2@x,8]");
  constexpr auto split = []<int Axis, std::int64_t... Parts>() {
    return fault<ts::ops::slice_rule<&ts::ops::plan_split<Axis, 0, Parts...>, void>, decltype(by_x)>;
  };
  STATIC_REQUIRE(split.operator()<0, 2>() == message::layout_sharding);
  STATIC_REQUIRE(split.operator()<1, 3>() == message::split_sections);
  STATIC_REQUIRE(split.operator()<1, 0>() == message::split_sections);
  STATIC_REQUIRE(split.operator()<1, 3, 4>() == message::split_sizes);
  STATIC_REQUIRE(split.operator()<1, 9, -1>() == message::split_sizes);
  STATIC_REQUIRE(split.operator()<2, 2>() == message::shape_no_dimension);
}

TEST_CASE("Entries that do not fit the array have no type") {
  STATIC_REQUIRE(fault<rule<0, 0, 0>, decltype(whole)> == message::slice_entries);
  STATIC_REQUIRE(fault<rule<4>, decltype(whole)> == message::slice_index);
  STATIC_REQUIRE(fault<rule<-5>, decltype(whole)> == message::slice_index);
  STATIC_REQUIRE(fault<rule<range{0, 5}>, decltype(whole)> == message::slice_index);
  STATIC_REQUIRE(fault<rule<range{-5}>, decltype(whole)> == message::slice_index);
  STATIC_REQUIRE(fault<rule<range{4, none, -1}>, decltype(whole)> == message::slice_index);
  STATIC_REQUIRE(fault<rule<range{0, 4, 0}>, decltype(whole)> == message::slice_stride);
}
