// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/create.hpp>

#include "ops/support.hpp"

template <class Shape, class Spec = void, ts::dtype D = ts::f32>
inline constexpr auto& rule = ts::ops::creation_rule<Shape, D, Spec>;

TEST_CASE("New arrays live on the mesh of the array beside them, uncut or cut as asked") {
  STATIC_REQUIRE(TYPE(ts::zeros<shape<8, 4>>(by_x)) == "float32[8,4]");
  STATIC_REQUIRE(TYPE(ts::ones<shape<8, 4>, ts::i32>(by_x, ts::out_sharding<P<"x", "y">>)) == "int32[8@x,4@y]");
  STATIC_REQUIRE(TYPE(ts::full<shape<>, ts::bool_>(by_x, true)) == "bool[]");
  STATIC_REQUIRE(TYPE(ts::iota<shape<8, 4>>(by_x, ts::out_sharding<P<"x", "y">>)) == "int32[8@x,4@y]");
  STATIC_REQUIRE(TYPE(ts::arange<2, 9, 3>(by_x)) == "int32[3]" && TYPE(ts::arange<9>(by_x)) == "int32[9]");
  STATIC_REQUIRE(TYPE(ts::eye<4, 6>(by_x, ts::out_sharding<P<"x">>)) == "float32[4@x,6]");
  STATIC_REQUIRE(TYPE(ts::zeros<shape<8>>(bias, ts::out_sharding<P<"y">>)) == "float32[8@y]");
}

TEST_CASE("Arrays like another one have its type, triangles too") {
  STATIC_REQUIRE(TYPE(ts::zeros_like(ints)) == "int32[4@x,8]" && TYPE(ts::full_like(by_xy, 2)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::tril(by_xy)) == "float32[4@x,8@y]" && TYPE(ts::triu<-1>(doubles)) == "float64[4@x,8]");
  STATIC_REQUIRE(fault<ts::ops::triangle_rule, decltype(row)> == message::triangle_rank);
}

TEST_CASE("What has no type as an array cannot be made") {
  STATIC_REQUIRE(fault<rule<shape<8, -4>>, decltype(row)> == message::shape_extent);
  STATIC_REQUIRE(fault<rule<shape<1, 1, 1, 1, 1, 1, 1, 1, 1>>, decltype(row)> == message::shape_rank);
  STATIC_REQUIRE(fault<rule<shape<8, 4>, P<"x", "x">>, decltype(row)> == message::spec_axis_twice);
  STATIC_REQUIRE(fault<rule<shape<8, 4>, P<"q">>, decltype(row)> == message::spec_unknown_axis);
  STATIC_REQUIRE(fault<rule<shape<8, 4>, P<none, none, "x">>, decltype(row)> == message::spec_too_long);
  STATIC_REQUIRE(fault<rule<shape<7>, P<"x">>, decltype(row)> == message::spec_indivisible);
  STATIC_REQUIRE(fault<ts::ops::iota_rule<shape<8>, 1, ts::i32, void>, decltype(row)> == message::shape_no_dimension);
  STATIC_REQUIRE(fault<ts::ops::iota_rule<shape<8>, 0, ts::bool_, void>, decltype(row)> ==
                 message::elementwise_needs_number);
  STATIC_REQUIRE(fault<ts::ops::arange_rule<0, 8, 0, void>, decltype(row)> == message::slice_stride);
}
