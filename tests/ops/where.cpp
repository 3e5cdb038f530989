// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/where.hpp>

#include "ops/support.hpp"

extern const array<ts::bool_, shape<>> flag;
extern const array<ts::bool_, shape<4, 1>> column;

TEST_CASE("where has the cases' dtype and the joined cut; a number takes the other case's dtype") {
  STATIC_REQUIRE(TYPE(ts::where(bools, by_x, by_x)) == "float32[4@x,8]" &&
                 TYPE(ts::where(bools, ints, 0)) == "int32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::where(flag, by_xy, by_xy)) == "float32[4@x,8@y]" &&
                 TYPE(ts::where(flag, 1.0, doubles)) == "float64[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::where(column, by_x, whole)) == "float32[4@x,8]" &&
                 TYPE(ts::where(bools, row_y, scalar)) == "float32[4@x,8@y]");
}

TEST_CASE("Equal shapes want equal cuts, the predicate wants bool, the cases one dtype") {
  constexpr auto rule = ts::ops::where_rule;
  STATIC_REQUIRE(fault<rule, decltype(by_x), decltype(whole), decltype(bools)> == message::where_sharding);
  STATIC_REQUIRE(fault<rule, decltype(whole), decltype(whole), decltype(bools)> == message::where_sharding);
  STATIC_REQUIRE(fault<rule, decltype(by_x), decltype(whole), decltype(flag)> == message::where_sharding);
  STATIC_REQUIRE(fault<rule, decltype(by_x), decltype(by_x), decltype(ints)> == message::where_predicate);
  STATIC_REQUIRE(fault<rule, decltype(by_x), decltype(doubles), decltype(bools)> == message::where_dtype);
}
