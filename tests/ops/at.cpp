// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/at.hpp>

#include "ops/support.hpp"

using ts::range;
using ts::sharding::scatter_kind;

extern const array<ts::i32, shape<3>> ids;
extern const array<ts::i32, shape<2>, P<"x">> ids_x;
extern const array<ts::i32, shape<2, 1>> rows;
extern const array<ts::f32, shape<3, 8>> three_rows;
extern const array<ts::f32, shape<3, 8>, P<none, "y">> three_rows_y;
extern const array<ts::f32, shape<4, 8>, P<none, "y">> by_y;
extern const array<ts::f64, shape<3, 8>> three_rows64;

template <scatter_kind Kind, class... Options>
inline constexpr auto& rule = ts::ops::scatter_rule<0, Kind, Options...>;
template <ts::slice_entry... Entries>
inline constexpr auto& part = ts::ops::set_part_rule<void, Entries...>;

TEST_CASE("Changed elements leave the type as it is") {
  STATIC_REQUIRE(TYPE(ts::at(whole, ids).set(three_rows)) == "float32[4,8]");
  STATIC_REQUIRE(TYPE(ts::at(by_y, ids).add(three_rows_y)) == "float32[4,8@y]");
  STATIC_REQUIRE(TYPE(ts::at<1>(by_x, ids).max(0)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::at(whole, rows, ids).min(1.5)) == "float32[4,8]");
  STATIC_REQUIRE(TYPE(ts::at(whole, rows, ids).get()) == "float32[2,3]");
  STATIC_REQUIRE(TYPE(ts::at<range{1, 3}>(by_y).set(0)) == "float32[4,8@y]");
  STATIC_REQUIRE(TYPE(ts::at<none, 3>(by_x).add(1)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::at<1, 2>(whole).get()) == "float32[]");
}

TEST_CASE("Cuts that would move data need out_sharding, which cuts the result") {
  STATIC_REQUIRE(fault<rule<scatter_kind::set>, decltype(by_x), decltype(three_rows), decltype(ids)> ==
                 message::take_dimension_sharding);
  STATIC_REQUIRE(fault<rule<scatter_kind::add>, decltype(whole), int, decltype(ids_x)> ==
                 message::take_indices_sharding);
  STATIC_REQUIRE(fault<rule<scatter_kind::add>, decltype(whole), decltype(three_rows_y), decltype(ids)> ==
                 message::scatter_sharding);
  STATIC_REQUIRE(TYPE(ts::at(by_x, ids, ts::out_sharding<P<"x">>).set(three_rows)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::at(whole, ids_x, ts::out_sharding<P<none, "y">>).add(1)) == "float32[4,8@y]");
  STATIC_REQUIRE(TYPE(ts::at(by_x, rows, ids, ts::out_sharding<P<"x">>, ts::mode_drop).set(0)) == "float32[4@x,8]");
  STATIC_REQUIRE(fault<part<range{0, 2}>, decltype(by_x), int> == message::layout_sharding);
  STATIC_REQUIRE(TYPE(ts::at<range{0, 2}>(by_x, ts::out_sharding<P<"x">>).set(0)) == "float32[4@x,8]");
}

TEST_CASE("Updates have the array's dtype and the extents of what they change") {
  STATIC_REQUIRE(fault<rule<scatter_kind::set>, decltype(whole), decltype(three_rows64), decltype(ids)> ==
                 message::scatter_dtype);
  STATIC_REQUIRE(fault<rule<scatter_kind::set>, decltype(whole), decltype(row), decltype(ids)> ==
                 message::scatter_shape);
  STATIC_REQUIRE(fault<rule<scatter_kind::add>, decltype(bools), bool, decltype(ids)> ==
                 message::elementwise_needs_number);
  STATIC_REQUIRE(fault<rule<scatter_kind::add, ts::index_mode_t<ts::sharding::index_mode::wrap>>, decltype(whole), int,
                       decltype(ids), decltype(ids)> == message::take_wrap);
  STATIC_REQUIRE(fault<rule<scatter_kind::add>, decltype(row), int, decltype(ids), decltype(ids)> ==
                 message::shape_no_dimension);
  STATIC_REQUIRE(fault<part<range{0, 2}>, decltype(whole), decltype(three_rows)> == message::scatter_shape);
  STATIC_REQUIRE(fault<part<range{0, 3}>, decltype(whole), decltype(three_rows_y)> == message::scatter_sharding);
  STATIC_REQUIRE(fault<part<range{0, 3}>, decltype(whole), decltype(three_rows64)> == message::scatter_dtype);
}
