// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/gather.hpp>

#include "ops/support.hpp"

extern const array<ts::f32, shape<64, 16>, P<none, "x">> table;
extern const array<ts::f32, shape<64, 16>, P<"y">> by_rows;
extern const array<ts::i32, shape<8, 4>> ids;
extern const array<ts::i32, shape<8, 4>, P<"x">> ids_x;
extern const array<ts::u32, shape<64, 4>, P<"y">> ids_y;
extern const array<ts::i32, shape<>> one_id;
extern const array<ts::i32, shape<3, 8>, P<none, "y">> by_xy_ids;
extern const array<ts::i32, shape<4, 2>, P<"y">> by_y_ids;
extern const array<ts::f32, shape<0, 4>> nothing;
extern const array<ts::f32, shape<4, 8>, P<none, "y">> columns_y;

template <int Axis, class... Options>
inline constexpr auto& rule = ts::ops::take_rule<Axis, false, Options...>;
template <int Axis, class... Options>
inline constexpr auto& along = ts::ops::take_rule<Axis, true, Options...>;

TEST_CASE("Chosen dimensions take the place of the indexed one, the others keep their cuts") {
  STATIC_REQUIRE(TYPE(ts::take<0>(table, ids)) == "float32[8,4,16@x]");
  STATIC_REQUIRE(TYPE(ts::take<1>(by_rows, ids)) == "float32[64@y,8,4]");
  STATIC_REQUIRE(TYPE(ts::take<0>(table, one_id)) == "float32[16@x]");
  STATIC_REQUIRE(TYPE(ts::take<-1>(by_rows, ids, ts::mode_clip)) == "float32[64@y,8,4]");
}

TEST_CASE("Batch dimensions of array and indices go together, an uncut one adapts") {
  STATIC_REQUIRE(TYPE(ts::take<1>(by_rows, ids_y, ts::batch_dims<1>)) == "float32[64@y,4]");
  STATIC_REQUIRE(TYPE(ts::take<1>(table, ids_y, ts::batch_dims<1>, ts::out_sharding<P<"x">>)) == "float32[64@x,4]");
  STATIC_REQUIRE(TYPE(ts::take_along_axis<1>(by_rows, ids_y)) == "float32[64@y,4]");
  STATIC_REQUIRE(TYPE(ts::take_along_axis<0>(columns_y, by_xy_ids)) == "float32[3,8@y]");
}

TEST_CASE("Cut indices and cut indexed dimensions need out_sharding") {
  STATIC_REQUIRE(fault<rule<0>, decltype(by_rows), decltype(ids)> == message::take_dimension_sharding);
  STATIC_REQUIRE(fault<rule<0>, decltype(whole), decltype(ids_x)> == message::take_indices_sharding);
  STATIC_REQUIRE(TYPE(ts::take<0>(table, ids_x, ts::out_sharding<P<"x">>)) == "float32[8@x,4,16]");
  STATIC_REQUIRE(TYPE(ts::take<0>(by_rows, ids_x, ts::out_sharding<P<"x", none, "y">>)) == "float32[8@x,4,16@y]");
  STATIC_REQUIRE(fault<rule<0, ts::out_sharding_t<P<"y", "y">>>, decltype(table), decltype(ids)> ==
                 message::spec_axis_twice);
  STATIC_REQUIRE(fault<along<1>, decltype(by_x), decltype(by_y_ids)> == message::take_batch_sharding);
}

TEST_CASE("Indices that are no integers, or do not go with the array, have no type") {
  STATIC_REQUIRE(fault<rule<0>, decltype(table), decltype(row)> == message::take_indices);
  STATIC_REQUIRE(fault<rule<2>, decltype(table), decltype(ids)> == message::shape_no_dimension);
  STATIC_REQUIRE(fault<rule<0>, decltype(nothing), decltype(ids)> == message::take_empty);
  STATIC_REQUIRE(fault<rule<1, ts::batch_dims_t<1>>, decltype(table), decltype(ids)> == message::take_batch);
  STATIC_REQUIRE(fault<rule<0, ts::batch_dims_t<1>>, decltype(table), decltype(ids)> == message::take_batch);
  STATIC_REQUIRE(fault<along<0>, decltype(table), decltype(one_id)> == message::take_batch);
}
