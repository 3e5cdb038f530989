// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/einsum.hpp>

#include "ops/support.hpp"

using ts::out_sharding;

extern const array<ts::f32, shape<2, 4, 8, 16>, P<"x", none, "y">> queries;
extern const array<ts::f32, shape<2, 6, 8, 16>, P<"x", none, "y">> keys;
extern const array<ts::f32, shape<8, 16>, P<none, "y">> columns;
extern const array<ts::f32, shape<16, 4>, P<"y">> rows;
extern const array<ts::f32, shape<16, 8>, P<"y">> kernel_rows;
extern const array<ts::f32, shape<8, 4>> whole_turned;
extern const array<ts::f32, shape<8, 16>, P<"x", "y">> left;
extern const array<ts::f32, shape<16, 4>, P<"y">> right;
extern const array<ts::f32, shape<8, 4>, P<"x">> third;
extern const array<ts::f32, shape<16>> long_row;

TEST_CASE("Letters of the result keep their cuts, in the order of the result") {
  STATIC_REQUIRE(TYPE(ts::einsum<"bthd,bshd->bhts">(queries, keys)) == "float32[2@x,8@y,4,6]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,cb->ca">(by_x, kernel_rows)) == "float32[16@y,4@x]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab -> ba">(by_xy)) == "float32[8@y,4@x]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab->a">(by_xy)) == "float32[4@x]" && TYPE(ts::einsum<"a->">(row_y)) == "float32[]");
}

TEST_CASE("Without an arrow the result has the letters that stand once, in alphabetical order") {
  STATIC_REQUIRE(TYPE(ts::einsum<"ba,ca">(by_x, kernel_rows)) == "float32[4@x,16@y]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ba">(by_xy)) == "float32[8@y,4@x]");
  STATIC_REQUIRE(TYPE(ts::einsum<"a,a">(row, row)) == "float32[]");
}

TEST_CASE("out_sharding is meant for the letters of the result") {
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc->ca">(columns, rows, out_sharding<P<"y">>)) == "float32[4@y,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc->ca">(columns, rows, out_sharding<P<none, "x">>)) == "float32[4,8@x]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab->ba">(by_xy, out_sharding<P<"x", "y">>)) == "float32[8@x,4@y]");
}

extern const array<ts::bf16, shape<8, 16>, P<none, "y">> small_columns;
extern const array<ts::bf16, shape<16, 4>, P<"y">> small_rows;

TEST_CASE("Sums of 16-bit operands are kept in the preferred type") {
  using ts::preferred_element_type;
  STATIC_REQUIRE(TYPE(ts::einsum<"ab->ba">(small_columns)) == "bfloat16[16@y,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab->ba">(small_columns, preferred_element_type<ts::f32>)) == "float32[16@y,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc->ca">(small_columns, small_rows, preferred_element_type<ts::f32>,
                                              out_sharding<P<"y">>)) == "float32[4@y,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc->ca">(columns, rows, preferred_element_type<ts::bf16>, out_sharding<P<>>)) ==
                 "bfloat16[4,8]");
}

TEST_CASE("Three operands are two products; with out_sharding nothing is asked on the way") {
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc,cd->ad">(by_x, whole_turned, whole)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc,ac->c">(left, right, third, out_sharding<P<>>)) == "float32[4]");
}

template <ts::text Subscripts, class OutSpec = void>
constexpr auto rule = ts::ops::einsum_rule<Subscripts, OutSpec>;
using by_x_t = decltype(by_x);
using row_t = decltype(row);
using four = array<ts::f32, shape<2, 2, 2, 2>>;

TEST_CASE("Three dots are the dimensions that letters leave, counted from the last one") {
  STATIC_REQUIRE(TYPE(ts::einsum<"...a,ab->...b">(by_x, whole_turned)) == "float32[4@x,4]");
  STATIC_REQUIRE(TYPE(ts::einsum<"...,...->...">(by_x, row)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"...a->a...">(by_xy)) == "float32[8@y,4@x]");
  STATIC_REQUIRE(TYPE(ts::einsum<"a...">(by_xy)) == "float32[8@y,4@x]");
  STATIC_REQUIRE(TYPE(ts::einsum<"...ab,bc->...ac">(by_x, whole_turned)) == "float32[4@x,4]");
  using ts::sharding::write_out_ellipses;
  constexpr ts::aval two[] = {ts::plain_aval<ts::f32, shape<2, 3, 4, 5>>(), ts::plain_aval<ts::f32, shape<3, 5, 6>>()};
  STATIC_REQUIRE(write_out_ellipses("...ab, ...bc -> ...ac", two).view() == "67ab, 7bc -> 67ac");
  STATIC_REQUIRE(write_out_ellipses("...ab,bc->ac", two).failure == message::einsum_ellipsis);
  STATIC_REQUIRE(fault<rule<"...ab,...bc->...ac">, decltype(by_x), decltype(row)> == message::einsum_rank);
  STATIC_REQUIRE(fault<rule<"...a...b->...">, decltype(by_x)> == message::einsum_text);
  STATIC_REQUIRE(fault<rule<"1a->a1">, decltype(by_x)> == message::einsum_text);
  STATIC_REQUIRE(fault<rule<"...a,...a->...">, decltype(by_x), decltype(kernel_rows)> == message::einsum_extent);
}

TEST_CASE("Subscripts that mean nothing, or do not fit the operands, have no type") {
  STATIC_REQUIRE(fault<rule<"a.">, by_x_t> == message::einsum_text);
  STATIC_REQUIRE(fault<rule<"ab->a->">, by_x_t> == message::einsum_text);
  STATIC_REQUIRE(fault<rule<"ab->a,b">, by_x_t> == message::einsum_text);
  STATIC_REQUIRE(fault<rule<"..a">, by_x_t> == message::einsum_text);
  STATIC_REQUIRE(fault<rule<"aa->a">, by_x_t> == message::einsum_repeated);
  STATIC_REQUIRE(fault<rule<"ab->aa">, by_x_t> == message::einsum_repeated);
  STATIC_REQUIRE(fault<rule<"ab->c">, by_x_t> == message::einsum_unknown);
  STATIC_REQUIRE(fault<rule<"ab,bc">, by_x_t> == message::einsum_operands);
  STATIC_REQUIRE(fault<rule<"abc">, by_x_t> == message::einsum_rank);
  STATIC_REQUIRE(fault<rule<"ab,b">, decltype(whole), decltype(long_row)> == message::einsum_extent);
  STATIC_REQUIRE(fault<rule<"abcdefghi">, by_x_t> == message::shape_rank);
  STATIC_REQUIRE(fault<rule<"abcd,efgh,i->abcdefg">, four, four, row_t> == message::none);
  STATIC_REQUIRE(fault<rule<"abcd,efgh,i->abcdefghi">, four, four, row_t> == message::shape_rank);
  STATIC_REQUIRE(fault<rule<"ab">, decltype(bools)> == message::matmul_bool);
  STATIC_REQUIRE(fault<rule<"ab,ab">, by_x_t, decltype(doubles)> == message::matmul_dtype);
}

TEST_CASE("Each product is ruled as a matrix product is") {
  STATIC_REQUIRE(fault<rule<"ab,bc">, decltype(columns), decltype(rows)> == message::matmul_contracting_both);
  STATIC_REQUIRE(fault<rule<"ab,b">, decltype(columns), decltype(long_row)> == message::matmul_contracting_one);
  STATIC_REQUIRE(fault<rule<"a,b">, decltype(row_y), decltype(row_y)> == message::matmul_duplicate);
  STATIC_REQUIRE(fault<rule<"ab,ab->ab">, by_x_t, decltype(whole)> == message::matmul_batch_sharding);
  STATIC_REQUIRE(fault<rule<"ab,ab->ab", P<>>, by_x_t, decltype(whole)> == message::none);
  STATIC_REQUIRE(fault<rule<"ab->a", P<"x", "y">>, by_x_t> == message::spec_too_long);
  STATIC_REQUIRE(fault<rule<"ab->a", P<"z">>, by_x_t> == message::spec_unknown_axis);
}

TEST_CASE(
    "A product may stay a pending sum over the axes that cut what is contracted; a reduced operand loses its mark") {
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc->ca">(columns, rows, out_sharding<P<ts::unreduced<"y">>>)) ==
                 "float32[4,8]{U:y}");
  STATIC_REQUIRE(fault<rule<"ab,bc->ca", P<ts::unreduced<"x">>>, decltype(columns), decltype(rows)> ==
                 message::matmul_unreduced);
  using replicated = array<ts::f32, shape<8, 16>, P<ts::reduced<"x">>>;
  STATIC_REQUIRE(TYPE(ts::einsum<"ab,bc->ac">(by_x, std::declval<replicated>())) == "float32[4@x,16]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ab->ba">(std::declval<replicated>())) == "float32[16,8]{R:x}");
}
