// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/dynamic_slice.hpp>

#include "ops/support.hpp"

extern const array<ts::i32, shape<>> at_run_time;
extern const array<ts::u32, shape<>> unsigned_start;
extern const array<ts::f32, shape<>> no_start;
extern const array<ts::f32, shape<4, 2>, P<"x">> columns;
extern const array<ts::f32, shape<4, 2>> columns_uncut;
extern const array<ts::f32, shape<4>, P<"x">> column;
extern const array<ts::f64, shape<4, 2>, P<"x">> columns64;
extern const array<ts::f32, shape<2, 8>, P<"x">> rows_x;

using start_type = decltype(at_run_time);
template <std::int64_t... Sizes>
inline constexpr auto& rule = ts::ops::dynamic_slice_rule<void, Sizes...>;
inline constexpr auto& update_rule = ts::ops::dynamic_update_rule<void>;

TEST_CASE("A dynamic part keeps the cuts of dimensions it takes whole") {
  STATIC_REQUIRE(TYPE(ts::dynamic_slice<4, 2>(by_x, 0, at_run_time)) == "float32[4@x,2]");
  STATIC_REQUIRE(TYPE(ts::dynamic_slice<1, 1>(whole, unsigned_start, -1)) == "float32[1,1]");
  STATIC_REQUIRE(TYPE(ts::dynamic_slice_in_dim<3, -1>(by_x, at_run_time)) == "float32[4@x,3]");
  STATIC_REQUIRE(TYPE(ts::dynamic_index_in_dim<1>(by_x, at_run_time)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::dynamic_slice<2, 8>(by_x, at_run_time, 0, ts::out_sharding<P<"x">>)) == "float32[2@x,8]");
  STATIC_REQUIRE(TYPE(ts::dynamic_index_in_dim(by_xy, 1, ts::out_sharding<P<"y">>)) == "float32[8@y]");
}

TEST_CASE("An update leaves the type as it is") {
  STATIC_REQUIRE(TYPE(ts::dynamic_update_slice(by_x, columns, 0, at_run_time)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::dynamic_update_slice_in_dim<1>(by_x, columns, at_run_time)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::dynamic_update_index_in_dim<1>(by_x, column, at_run_time)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::dynamic_update_slice(by_x, columns_uncut, 0, 0, ts::out_sharding<P<none, "y">>)) ==
                 "float32[4,8@y]");
}

TEST_CASE("What would move between devices needs out_sharding") {
  STATIC_REQUIRE(fault<rule<2, 8>, decltype(by_x), start_type, start_type> == message::layout_sharding);
  STATIC_REQUIRE(fault<ts::ops::in_dim_rule<0, 1, true, void>, decltype(by_x), start_type> == message::layout_sharding);
  STATIC_REQUIRE(fault<update_rule, decltype(by_x), decltype(columns_uncut), start_type, start_type> ==
                 message::dynamic_update_sharding);
  STATIC_REQUIRE(fault<update_rule, decltype(by_x), decltype(rows_x), start_type, start_type> ==
                 message::layout_sharding);
}

TEST_CASE("Starts are integer scalars, one a dimension; sizes are within the array") {
  STATIC_REQUIRE(fault<rule<4, 2>, decltype(whole), start_type> == message::dynamic_starts);
  STATIC_REQUIRE(fault<rule<4>, decltype(whole), start_type, start_type> == message::dynamic_starts);
  STATIC_REQUIRE(fault<rule<4, 2>, decltype(whole), start_type, decltype(no_start)> == message::dynamic_start);
  STATIC_REQUIRE(fault<rule<4, 2>, decltype(whole), start_type, decltype(row)> == message::dynamic_start);
  STATIC_REQUIRE(fault<rule<4, 9>, decltype(whole), start_type, start_type> == message::dynamic_size);
  STATIC_REQUIRE(fault<rule<-1, 8>, decltype(whole), start_type, start_type> == message::dynamic_size);
  STATIC_REQUIRE(fault<update_rule, decltype(columns), decltype(by_x), start_type, start_type> ==
                 message::dynamic_update_shape);
  STATIC_REQUIRE(fault<update_rule, decltype(by_x), decltype(column), start_type, start_type> ==
                 message::dynamic_update_shape);
  STATIC_REQUIRE(fault<update_rule, decltype(by_x), decltype(columns64), start_type, start_type> ==
                 message::dynamic_update_dtype);
  STATIC_REQUIRE(fault<ts::ops::in_dim_rule<2, 1, true, void>, decltype(by_x), start_type> ==
                 message::shape_no_dimension);
}
