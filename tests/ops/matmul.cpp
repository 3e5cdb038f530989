// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/matmul.hpp>

#include "ops/support.hpp"

using tall = array<ts::f32, shape<8, 16>>;
using row_cut = array<ts::f32, shape<8, 16>, P<"y">>;
extern const tall right;
extern const row_cut right_by_row;
extern const array<ts::f32, shape<4, 8>, P<none, "y">> left_by_column;
extern const array<ts::f32, shape<3, 4, 8>, P<none, "x">> batch;
extern const array<ts::f32, shape<3, 8, 16>> batch_right;

TEST_CASE("Rows are cut as on the left, columns as on the right") {
  STATIC_REQUIRE(TYPE(ts::matmul(by_x, right)) == "float32[4@x,16]");
  STATIC_REQUIRE(TYPE(ts::matmul(by_x, kernel)) == "float32[4@x,16@y]");
  STATIC_REQUIRE(TYPE(ts::matmul(batch, kernel)) == "float32[3,4@x,16@y]");
  STATIC_REQUIRE(TYPE(ts::matmul(batch, batch_right)) == "float32[3,4@x,16]");
}

TEST_CASE("With out_sharding the contracting dimension may be cut") {
  STATIC_REQUIRE(TYPE(ts::matmul(left_by_column, right_by_row, ts::out_sharding<P<"x">>)) == "float32[4@x,16]");
  STATIC_REQUIRE(TYPE(ts::matmul(left_by_column, right, ts::out_sharding<P<>>)) == "float32[4,16]");
  STATIC_REQUIRE(TYPE(ts::matmul(left_by_column, right_by_row, ts::out_sharding<P<none, "y">>)) == "float32[4,16@y]");
}

TEST_CASE("Without it the product has no type, and says why") {
  constexpr auto rule = ts::ops::matmul_rule<void>;
  STATIC_REQUIRE(fault<rule, decltype(left_by_column), row_cut> == message::matmul_contracting_both);
  STATIC_REQUIRE(fault<rule, decltype(left_by_column), tall> == message::matmul_contracting_one);
  STATIC_REQUIRE(fault<rule, decltype(by_x), row_cut> == message::matmul_contracting_one);
  STATIC_REQUIRE(fault<rule, decltype(doubles), tall> == message::matmul_dtype);
  STATIC_REQUIRE(fault<rule, decltype(scalar), tall> == message::matmul_rank);
  STATIC_REQUIRE(fault<ts::ops::matmul_rule<P<"q">>, decltype(by_x), tall> == message::spec_unknown_axis);
}
