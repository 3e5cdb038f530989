// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/dot_general.hpp>
#include <tessera/ops/matmul.hpp>

#include "ops/support.hpp"

using ts::dims, ts::out_sharding;

extern const array<ts::f32, shape<2, 4, 8>, P<"x">> batch;
extern const array<ts::f32, shape<2, 8, 4>, P<"x">> turned;

TEST_CASE("dot_general gives batch dimensions, then what is left of each operand") {
  STATIC_REQUIRE(TYPE(ts::dot_general<dims<2>, dims<1>, dims<0>, dims<0>>(batch, turned)) == "float32[2@x,4,4]");
  STATIC_REQUIRE(TYPE(ts::dot_general<dims<-1>, dims<-2>>(by_x, kernel)) == "float32[4@x,16@y]");
  STATIC_REQUIRE(TYPE(ts::dot_general<dims<0>, dims<0>>(by_x, by_x, out_sharding<P<none, "x">>)) == "float32[8,8@x]");
  STATIC_REQUIRE(TYPE(ts::dot_general<dims<>, dims<>>(row, row_y)) == "float32[8,8@y]");
}

TEST_CASE("dot, tensordot, outer and inner are contractions of neighbours, of nothing and of last dimensions") {
  STATIC_REQUIRE(TYPE(ts::dot(by_x, kernel)) == "float32[4@x,16@y]" && TYPE(ts::dot(row, row)) == "float32[]");
  STATIC_REQUIRE(TYPE(ts::dot(whole, turned)) == "float32[4,2@x,4]");
  STATIC_REQUIRE(TYPE(ts::tensordot<1>(by_x, kernel)) == "float32[4@x,16@y]");
  STATIC_REQUIRE(TYPE(ts::tensordot(batch, whole)) == "float32[2@x]");
  STATIC_REQUIRE(TYPE(ts::outer(row, row_y)) == "float32[8,8@y]" && TYPE(ts::inner(by_x, row)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::outer(row_y, row_y, out_sharding<P<"y">>)) == "float32[8@y,8]");
}

TEST_CASE("matmul takes vectors on either side, and a matrix before a batch of them") {
  STATIC_REQUIRE(TYPE(ts::matmul(row, row)) == "float32[]" && TYPE(ts::matmul(by_x, row)) == "float32[4@x]");
  STATIC_REQUIRE(TYPE(ts::matmul(row, kernel)) == "float32[16@y]");
  STATIC_REQUIRE(TYPE(ts::matmul(batch, row)) == "float32[2@x,4]" && TYPE(ts::matmul(row, turned)) == "float32[2@x,4]");
  STATIC_REQUIRE(TYPE(ts::matmul(whole, turned)) == "float32[2@x,4,4]");
  STATIC_REQUIRE(TYPE(ts::matmul(whole, turned, out_sharding<P<none, "y">>)) == "float32[2,4@y,4]");
}

template <class A, class B, class C = dims<>, class D = dims<>>
constexpr auto rule = ts::ops::contraction_rule<ts::ops::listed_contraction<A, B, C, D>, void>;
using by_x_t = decltype(by_x);

TEST_CASE("Dimensions that are not there, named twice or without partner have no type") {
  STATIC_REQUIRE(fault<rule<dims<2>, dims<0>>, by_x_t, by_x_t> == message::dot_general_dims);
  STATIC_REQUIRE(fault<rule<dims<-3>, dims<0>>, by_x_t, by_x_t> == message::dot_general_dims);
  STATIC_REQUIRE(fault<rule<dims<1, -1>, dims<0, 1>>, by_x_t, by_x_t> == message::dot_general_dims);
  STATIC_REQUIRE(fault<rule<dims<1>, dims<0, 1>>, by_x_t, by_x_t> == message::dot_general_dims);
  STATIC_REQUIRE(fault<rule<dims<1>, dims<1>, dims<1>, dims<0>>, by_x_t, by_x_t> == message::dot_general_dims);
  STATIC_REQUIRE(fault<ts::ops::contraction_rule<ts::ops::neighbours_contraction<3>, void>, by_x_t, by_x_t> ==
                 message::dot_general_dims);
  STATIC_REQUIRE(fault<ts::ops::contraction_rule<ts::ops::product_contraction, void>, decltype(scalar), by_x_t> ==
                 message::dot_general_dims);
  STATIC_REQUIRE(fault<rule<dims<1>, dims<0>>, by_x_t, by_x_t> == message::matmul_extent);
}
