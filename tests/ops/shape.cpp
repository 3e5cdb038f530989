// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/shape.hpp>

#include "ops/support.hpp"

TEST_CASE("reshape, transpose and broadcast_to carry cuts along") {
  STATIC_REQUIRE(TYPE(ts::reshape<1, 4, 8>(by_xy)) == "float32[1,4@x,8@y]" &&
                 TYPE(ts::reshape<32>(by_x)) == "float32[32@x]");
  STATIC_REQUIRE(TYPE(ts::reshape<2, 2, 8>(by_x)) == "float32[2@x,2,8]" &&
                 TYPE(ts::reshape<32>(whole)) == "float32[32]");
  STATIC_REQUIRE(TYPE(ts::transpose(by_xy)) == "float32[8@y,4@x]" &&
                 TYPE(ts::transpose<0, -1>(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::transpose(scalar)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::broadcast_to<3, 4, 8>(by_x)) == "float32[3,4@x,8]" &&
                 TYPE(ts::broadcast_to<4>(scalar)) == "float32[4]");
}

TEST_CASE("out_sharding lets a reshape move what must move, and cuts new dimensions") {
  STATIC_REQUIRE(TYPE(ts::reshape<8, 4>(by_xy, ts::out_sharding<P<"y">>)) == "float32[8@y,4]");
  STATIC_REQUIRE(TYPE(ts::reshape<32>(by_xy, ts::out_sharding<P<axes<"x", "y">>>)) == "float32[32@(x,y)]");
  STATIC_REQUIRE(TYPE(ts::broadcast_to<2, 8>(row_y, ts::out_sharding<P<"x", "y">>)) == "float32[2@x,8@y]");
}

TEST_CASE("What would move silently, does not fit or is no permutation has no type") {
  STATIC_REQUIRE(fault<ts::ops::reshape_rule<void, 32>, decltype(by_xy)> == message::reshape_merge);
  STATIC_REQUIRE(fault<ts::ops::reshape_rule<void, 8, 4>, decltype(by_x)> == message::reshape_unsupported);
  STATIC_REQUIRE(fault<ts::ops::reshape_rule<void, 5, 7>, decltype(by_x)> == message::reshape_size);
  STATIC_REQUIRE(fault<ts::ops::reshape_rule<void, -4, -8>, decltype(whole)> == message::shape_extent);
  STATIC_REQUIRE(fault<ts::ops::reshape_rule<void, 1, 1, 1, 1, 1, 1, 1, 4, 8>, decltype(whole)> == message::shape_rank);
  STATIC_REQUIRE(fault<ts::ops::reshape_rule<P<"x", "x">, 32, 1>, decltype(whole)> == message::spec_axis_twice);
  STATIC_REQUIRE(fault<ts::ops::transpose_rule<0, 0>, decltype(by_x)> == message::transpose_permutation);
  STATIC_REQUIRE(fault<ts::ops::transpose_rule<1>, decltype(by_x)> == message::transpose_permutation);
  STATIC_REQUIRE(fault<ts::ops::transpose_rule<0, 2>, decltype(by_x)> == message::transpose_permutation);
  STATIC_REQUIRE(fault<ts::ops::broadcast_rule<void, 4, 4>, decltype(row)> == message::broadcast_shape);
  STATIC_REQUIRE(fault<ts::ops::broadcast_rule<void, -1, 8>, decltype(row)> == message::shape_extent);
  STATIC_REQUIRE(fault<ts::ops::broadcast_rule<P<"x">, 2, 8>, decltype(row_y)> == message::broadcast_sharding);
}
