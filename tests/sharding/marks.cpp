// SPDX-License-Identifier: Apache-2.0
// The rules for unreduced and reduced operands, operation by operation.
#include <tessera/sharding/dot_general.hpp>
#include <tessera/sharding/elementwise.hpp>
#include <tessera/sharding/reduce.hpp>
#include <tessera/sharding/reshape.hpp>
#include <tessera/sharding/reshard.hpp>
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <concepts>

namespace ts = tessera;
using ts::message, ts::none, ts::P, ts::reduced, ts::unreduced, ts::unreduced_max, ts::unreduced_min;

namespace {

using grid = ts::mesh<ts::axis<"x", 2>, ts::axis<"y", 2>, ts::axis<"z", 1>>;

template <ts::dtype D, class Shape, class Spec>
inline constexpr ts::expr<ts::tensor<D, Shape, Spec, grid>::type, grid> array{};

template <class Spec>
inline constexpr auto& vector = array<ts::f32, ts::shape<8>, Spec>;
template <class Spec>
inline constexpr auto& matrix = array<ts::f32, ts::shape<8, 8>, Spec>;
template <class Spec>
inline constexpr auto& scalar = array<ts::f32, ts::shape<>, Spec>;

/// The type of an expression, which is not evaluated: outside a step there is no graph.
#define TYPE(...) ts::type_text<std::remove_cvref_t<decltype(__VA_ARGS__)>>()

template <ts::graph::op Code, class... Xs>
constexpr message refusal(const Xs&...) {
  return ts::ops::rule_on<ts::ops::elementwise_rule<Code, ts::ops::wants::anything>, grid, Xs...>().failure;
}
template <auto Rule, class... Xs>
constexpr message refusal_of(const Xs&...) {
  return ts::ops::rule_on<Rule, grid, Xs...>().failure;
}

using ts::graph::op;

constexpr auto& plain = vector<P<>>;
constexpr auto& cut = vector<P<"x">>;
constexpr auto& sum_x = vector<P<unreduced<"x">>>;
constexpr auto& sum_y = vector<P<unreduced<"y">>>;
constexpr auto& max_x = vector<P<unreduced_max<"x">>>;
constexpr auto& red_x = vector<P<reduced<"x">>>;
constexpr auto& red_y = vector<P<reduced<"y">>>;

}  // namespace

TEST_CASE("Unreduced and reduced axes are part of a spec, wherever they stand and in any order") {
  STATIC_REQUIRE(std::same_as<P<"x", none, unreduced<"y">>, P<"x", unreduced<"y">>>);
  STATIC_REQUIRE(std::same_as<P<unreduced<"y">, "x">, P<"x", unreduced<"y">>>);
  STATIC_REQUIRE(std::same_as<P<unreduced<"x", "y">>, P<unreduced<"y", "x">>>);
  STATIC_REQUIRE(std::same_as<P<unreduced<"x">, unreduced<"y">>, P<unreduced<"y", "x">>>);
  STATIC_REQUIRE(std::same_as<P<reduced<"x">, unreduced<"y">>, P<unreduced<"y">, reduced<"x">>>);
  STATIC_REQUIRE(std::same_as<P<unreduced<>>, P<>>);
  STATIC_REQUIRE(!std::same_as<P<unreduced<"x">>, P<reduced<"x">>>);
  STATIC_REQUIRE(!std::same_as<P<unreduced<"x">>, P<unreduced_max<"x">>>);
  STATIC_REQUIRE(P<"x", none, unreduced<"y">>::rank == 1 && P<unreduced<"y">>::rank == 0);
}

TEST_CASE("A type prints them behind its dimensions, and gives its spec back") {
  STATIC_REQUIRE(TYPE(matrix<P<"x", none, unreduced<"y">>>) == "float32[8@x,8]{U:y}");
  STATIC_REQUIRE(TYPE(matrix<P<none, "y", reduced<"x">>>) == "float32[8,8@y]{R:x}");
  STATIC_REQUIRE(TYPE(scalar<P<unreduced<"y", "x">>>) == "float32[]{U:x,y}");
  STATIC_REQUIRE(TYPE(max_x) == "float32[8]{U_max:x}");
  STATIC_REQUIRE(TYPE(vector<P<unreduced_min<"x">, reduced<"y">>>) == "float32[8]{U_min:x}{R:y}");
  STATIC_REQUIRE(std::same_as<ts::spec_type<matrix<P<"x", unreduced<"y">>>.type, grid>, P<"x", unreduced<"y">>>);
  STATIC_REQUIRE(
      std::same_as<ts::spec_type<vector<P<unreduced_max<"y", "x">>>.type, grid>, P<unreduced_max<"x", "y">>>);
  STATIC_REQUIRE(std::same_as<ts::spec_type<scalar<P<reduced<"x">>>.type, grid>, P<reduced<"x">>>);
}

template <class Spec, ts::dtype D = ts::f32>
constexpr ts::ruling ruled = ts::resolve<D, ts::shape<8, 8>, Spec, grid>();

TEST_CASE("What is wrong with the marks of a spec is said with the axis") {
  STATIC_REQUIRE(ruled<P<"x", unreduced<"x">>>.failure == message::spec_axis_uses &&
                 ruled<P<"x", unreduced<"x">>>.axis == "x");
  STATIC_REQUIRE(ruled<P<"x", reduced<"y", "x">>>.failure == message::spec_axis_uses);
  STATIC_REQUIRE(ruled<P<unreduced<"y">, reduced<"y">>>.failure == message::spec_axis_uses);
  STATIC_REQUIRE(ruled<P<unreduced<"q">>>.failure == message::spec_unknown_axis &&
                 ruled<P<unreduced<"q">>>.axis == "q");
  STATIC_REQUIRE(ruled<P<unreduced<"x", "x">>>.failure == message::spec_axis_twice);
  STATIC_REQUIRE(ruled<P<unreduced<"x">, unreduced_max<"y">>>.failure == message::spec_unreduced_kinds);
  STATIC_REQUIRE(ruled<P<unreduced<"x">>, ts::bool_>.failure == message::spec_unreduced_bool);
  STATIC_REQUIRE(ruled<P<reduced<"x">>, ts::bool_>.ok() && ruled<P<unreduced<"x">>, ts::i32>.ok());
  STATIC_REQUIRE(ruled<P<unreduced<"z">>>.ok());
}

TEST_CASE("add: both sides unreduced over the same axes, or neither") {
  STATIC_REQUIRE(TYPE(sum_x + sum_x) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(matrix<P<"x", unreduced<"y">>> + matrix<P<"x", unreduced<"y">>>) == "float32[8@x,8]{U:y}");
  STATIC_REQUIRE(TYPE(scalar<P<unreduced<"x">>> + scalar<P<unreduced<"x">>>) == "float32[]{U:x}");
  STATIC_REQUIRE(refusal<op::add>(sum_x, sum_y) == message::unreduced_add);
  STATIC_REQUIRE(refusal<op::add>(sum_x, plain) == message::unreduced_add);
  STATIC_REQUIRE(refusal<op::add>(plain, sum_x) == message::unreduced_add);
  STATIC_REQUIRE(refusal<op::add>(sum_x, red_x) == message::unreduced_add);
  STATIC_REQUIRE(refusal<op::add>(sum_x, 1.0F) == message::unreduced_add);
  STATIC_REQUIRE(refusal<op::add>(sum_x, cut) == message::unreduced_add);
  STATIC_REQUIRE(refusal<op::add>(max_x, max_x) == message::unreduced_operand);
}

TEST_CASE("mul and div: an unreduced array beside one that is reduced over the same axes") {
  STATIC_REQUIRE(TYPE(sum_x * red_x) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(red_x * sum_x) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(sum_x / red_x) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(vector<P<unreduced<"x">, reduced<"y">>> * vector<P<reduced<"x", "y">>>) ==
                 "float32[8]{U:x}{R:y}");
  STATIC_REQUIRE(TYPE(sum_x * scalar<P<reduced<"x">>>) == "float32[8]{U:x}");
  STATIC_REQUIRE(refusal<op::mul>(sum_x, sum_x) == message::unreduced_factor);
  STATIC_REQUIRE(refusal<op::mul>(sum_x, plain) == message::unreduced_factor);
  STATIC_REQUIRE(refusal<op::mul>(sum_x, 2.0F) == message::unreduced_factor);
  STATIC_REQUIRE(refusal<op::mul>(sum_x, scalar<P<>>) == message::unreduced_factor);
  STATIC_REQUIRE(refusal<op::mul>(sum_x, red_y) == message::unreduced_factor);
  STATIC_REQUIRE(refusal<op::mul>(sum_x, vector<P<reduced<"x", "y">>>) == message::reduced_mix);
  STATIC_REQUIRE(refusal<op::div>(red_x, sum_x) == message::unreduced_divisor);
  STATIC_REQUIRE(refusal<op::div>(sum_x, 2.0F) == message::unreduced_factor);
  STATIC_REQUIRE(refusal<op::div>(1.0F, sum_x) == message::unreduced_divisor);
}

TEST_CASE("Every other elementwise operation refuses an unreduced array") {
  STATIC_REQUIRE(refusal<op::sub>(sum_x, sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal<op::neg>(sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal<op::sin>(sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal<op::max>(sum_x, sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal<op::gt>(sum_x, 0.0F) == message::unreduced_operand);
  STATIC_REQUIRE(refusal<op::pow>(max_x, max_x) == message::unreduced_operand);
  STATIC_REQUIRE(TYPE(ts::stop_gradient(sum_x)) == "float32[8]{U:x}");
}

TEST_CASE("Reduced arrays go together; a scalar joins them, a plain or cut array does not") {
  STATIC_REQUIRE(TYPE(ts::sin(red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::gelu(red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(red_x * red_x - red_x / red_x) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(red_x > 0.0F) == "bool[8]{R:x}");
  STATIC_REQUIRE(TYPE(2.0F * red_x + scalar<P<>>) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(matrix<P<"y", reduced<"x">>> + red_x) == "float32[8@y,8]{R:x}");
  STATIC_REQUIRE(refusal<op::add>(red_x, plain) == message::reduced_mix);
  STATIC_REQUIRE(refusal<op::mul>(red_x, red_y) == message::reduced_mix);
  STATIC_REQUIRE(refusal<op::sub>(red_x, cut) == message::reduced_cut);
  STATIC_REQUIRE(refusal<op::mul>(cut, red_x) == message::reduced_cut);
  STATIC_REQUIRE(refusal<op::add>(vector<P<"y">>, red_x) == message::reduced_mix);
}

TEST_CASE("where: both cases unreduced over the same axes; a predicate is free") {
  constexpr auto& condition = array<ts::bool_, ts::shape<8>, P<>>;
  STATIC_REQUIRE(TYPE(ts::where(condition, sum_x, sum_x)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::where(condition, red_x, 0.0F)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::where(red_x > 0.0F, red_x, red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::where_rule>(sum_x, 0.0F, condition) == message::where_unreduced);
  STATIC_REQUIRE(refusal_of<ts::ops::where_rule>(sum_x, sum_y, condition) == message::where_unreduced);
  STATIC_REQUIRE(refusal_of<ts::ops::where_rule>(max_x, max_x, condition) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<ts::ops::where_rule>(red_x, plain, condition) == message::reduced_mix);
}

TEST_CASE("Operations that only move elements carry unreduced and reduced axes") {
  STATIC_REQUIRE(TYPE(ts::reshape<2, 4>(sum_x)) == "float32[2,4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::reshape<4, 16>(matrix<P<"x", unreduced<"y">>>,
                                         ts::out_sharding<P<none, "x", unreduced<"y">>>)) == "float32[4,16@x]{U:y}");
  STATIC_REQUIRE(TYPE(ts::transpose<>(matrix<P<"x", reduced<"y">>>)) == "float32[8,8@x]{R:y}");
  STATIC_REQUIRE(TYPE(ts::broadcast_to<4, 8>(max_x)) == "float32[4,8]{U_max:x}");
  STATIC_REQUIRE(TYPE(ts::broadcast_to<4, 8>(red_x, ts::out_sharding<P<"y", reduced<"x">>>)) == "float32[4@y,8]{R:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::reshape_rule<P<>, 2, 4>>(sum_x) == message::marks_changed);
  STATIC_REQUIRE(refusal_of<ts::ops::reshape_rule<P<unreduced<"x">>, 2, 4>>(plain) == message::marks_changed);
  STATIC_REQUIRE(refusal_of<ts::ops::broadcast_rule<P<>, 4, 8>>(red_x) == message::marks_changed);
}

TEST_CASE("So do slices, joins and changes of dimensions") {
  STATIC_REQUIRE(TYPE(ts::slice<ts::range{0, 4}>(sum_x)) == "float32[4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::flip<0>(red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(std::get<1>(ts::split<0, 2>(sum_x))) == "float32[4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::concatenate<0>(sum_x, sum_x)) == "float32[16]{U:x}");
  STATIC_REQUIRE(TYPE(ts::roll<1, 0>(sum_x)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::stack<0>(red_x, red_x)) == "float32[2,8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::squeeze(ts::expand_dims<0>(max_x))) == "float32[8]{U_max:x}");
  STATIC_REQUIRE(TYPE(ts::moveaxis<0, 1>(matrix<P<"x", unreduced<"y">>>)) == "float32[8,8@x]{U:y}");
  STATIC_REQUIRE(TYPE(ts::pad<ts::padding{1, 1}>(red_x, 0.0F)) == "float32[10]{R:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::concatenate_rule<0, false, void>>(sum_x, plain) == message::concatenate_sharding);
  STATIC_REQUIRE(refusal_of<ts::ops::concatenate_rule<0, false, P<>>>(sum_x, sum_y) == message::concatenate_sharding);
  STATIC_REQUIRE(refusal_of<ts::ops::pad_rule<void, ts::padding{1, 1}>>(sum_x, 0.0F) == message::unreduced_operand);
}

TEST_CASE("astype of a pending sum only where it commutes with the sum") {
  STATIC_REQUIRE(TYPE(ts::astype<ts::f64>(sum_x)) == "float64[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::astype<ts::f32>(array<ts::i32, ts::shape<8>, P<unreduced<"x">>>)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::astype<ts::i32>(red_x)) == "int32[8]{R:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::convert_rule<ts::i32>>(sum_x) == message::astype_unreduced);
  STATIC_REQUIRE(refusal_of<ts::ops::convert_rule<ts::bool_>>(sum_x) == message::astype_unreduced);
}

TEST_CASE(
    "matmul leaves its result unreduced over exactly the axes that it sums over, and forgets that operands are reduced") {
  constexpr auto& columns = matrix<P<none, "x">>;
  constexpr auto& rows = matrix<P<"x">>;
  STATIC_REQUIRE(TYPE(ts::matmul(columns, rows, ts::out_sharding<P<unreduced<"x">>>)) == "float32[8,8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::matmul(matrix<P<"y", "x">>, rows, ts::out_sharding<P<"y", unreduced<"x">>>)) ==
                 "float32[8@y,8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::matmul(rows, matrix<P<reduced<"x">>>)) == "float32[8@x,8]");
  STATIC_REQUIRE(TYPE(ts::matmul(matrix<P<reduced<"x">>>, matrix<P<>>)) == "float32[8,8]");
  STATIC_REQUIRE(TYPE(ts::dot(columns, rows, ts::out_sharding<P<unreduced<"x">>>)) == "float32[8,8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::einsum<"ij,jk->ki">(columns, rows, ts::out_sharding<P<unreduced<"x">>>)) ==
                 "float32[8,8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::einsum<"ij,kj->ik">(rows, matrix<P<reduced<"x">>>)) == "float32[8@x,8]");
  STATIC_REQUIRE(TYPE(ts::einsum<"ij->i">(matrix<P<"x", unreduced<"y">>>)) == "float32[8@x]{U:y}");
  using ts::ops::einsum_rule;
  STATIC_REQUIRE(refusal_of<einsum_rule<"ij,jk->ik", P<unreduced<"y">>>>(columns, rows) == message::matmul_unreduced);
  STATIC_REQUIRE(refusal_of<einsum_rule<"ij->i", P<unreduced<"x">>>>(rows) == message::reduce_unreduced_axes);
  STATIC_REQUIRE(refusal_of<einsum_rule<"ij,jk->ik", void>>(matrix<P<unreduced<"x">>>, matrix<P<>>) ==
                 message::unreduced_operand);
  using ts::ops::matmul_rule;
  STATIC_REQUIRE(refusal_of<matmul_rule<P<unreduced<"x", "y">>>>(columns, rows) == message::matmul_unreduced);
  STATIC_REQUIRE(refusal_of<matmul_rule<P<unreduced<"y">>>>(columns, rows) == message::matmul_unreduced);
  STATIC_REQUIRE(refusal_of<matmul_rule<P<unreduced_max<"x">>>>(columns, rows) == message::matmul_unreduced);
  STATIC_REQUIRE(refusal_of<matmul_rule<P<unreduced<"x">>>>(columns, matrix<P<>>) == message::matmul_unreduced);
  STATIC_REQUIRE(refusal_of<matmul_rule<P<reduced<"x">>>>(columns, rows) == message::marks_changed);
  STATIC_REQUIRE(refusal_of<matmul_rule<void>>(matrix<P<unreduced<"x">>>, matrix<P<>>) == message::unreduced_operand);
}

TEST_CASE("sum keeps what is pending and may leave more so; max and min want their own kind") {
  constexpr auto& rows = matrix<P<"x">>;
  STATIC_REQUIRE(TYPE(ts::sum<0>(rows, ts::out_sharding<P<unreduced<"x">>>)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::sum(rows, ts::out_sharding<P<unreduced<"x">>>)) == "float32[]{U:x}");
  STATIC_REQUIRE(TYPE(ts::sum<0>(matrix<P<"x", unreduced<"y">>>, ts::out_sharding<P<unreduced<"x">>>)) ==
                 "float32[8]{U:x,y}");
  STATIC_REQUIRE(TYPE(ts::sum<1>(matrix<P<"x", unreduced<"y">>>)) == "float32[8@x]{U:y}");
  STATIC_REQUIRE(TYPE(ts::sum(sum_x, ts::out_sharding<P<>>)) == "float32[]{U:x}");
  STATIC_REQUIRE(TYPE(ts::sum(red_x)) == "float32[]{R:x}" && TYPE(ts::mean(red_x)) == "float32[]{R:x}");
  STATIC_REQUIRE(TYPE(ts::max<0>(rows, ts::out_sharding<P<unreduced_max<"x">>>)) == "float32[8]{U_max:x}");
  STATIC_REQUIRE(TYPE(ts::max(max_x)) == "float32[]{U_max:x}");
  STATIC_REQUIRE(TYPE(ts::softmax(red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::logsumexp(red_x)) == "float32[]{R:x}");
  using namespace ts::ops;
  using sum_of = total_kind<op::reduce_sum>;
  using max_of = extremum_kind<op::reduce_max>;
  STATIC_REQUIRE(refusal_of<reduction_rule<sum_of, false, P<unreduced<"y">>, 0>>(rows) ==
                 message::reduce_unreduced_axes);
  STATIC_REQUIRE(refusal_of<reduction_rule<sum_of, false, P<unreduced<"x">>, 1>>(rows) ==
                 message::reduce_unreduced_axes);
  STATIC_REQUIRE(refusal_of<reduction_rule<sum_of, false, P<unreduced_max<"x">>, 0>>(rows) ==
                 message::reduce_unreduced_kind);
  STATIC_REQUIRE(refusal_of<reduction_rule<max_of, false, P<unreduced<"x">>, 0>>(rows) ==
                 message::reduce_unreduced_kind);
  STATIC_REQUIRE(refusal_of<reduction_rule<max_of, false, void>>(sum_x) == message::reduce_unreduced_kind);
  STATIC_REQUIRE(refusal_of<reduction_rule<sum_of, false, void>>(max_x) == message::reduce_unreduced_kind);
  STATIC_REQUIRE(refusal_of<reduction_rule<mean_kind, false, void>>(sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<reduction_rule<mean_kind, false, P<unreduced<"x">>, 0>>(rows) == message::unreduced_result);
  STATIC_REQUIRE(refusal_of<reduction_rule<norm_kind, false, void>>(sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<softmax_rule<-1>>(sum_x) == message::unreduced_operand);
}

TEST_CASE("reshard goes from any of them to any other; a pending extremum can only be reduced") {
  STATIC_REQUIRE(TYPE(ts::reshard<P<>>(sum_x)) == "float32[8]");
  STATIC_REQUIRE(TYPE(ts::reshard<P<"x">>(sum_x)) == "float32[8@x]");
  STATIC_REQUIRE(TYPE(ts::reshard<P<unreduced<"x">>>(plain)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::reshard<P<unreduced<"x">>>(cut)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::reshard<P<reduced<"x">>>(sum_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::reshard<P<unreduced<"y">>>(red_x)) == "float32[8]{U:y}");
  STATIC_REQUIRE(TYPE(ts::reshard<P<>>(max_x)) == "float32[8]");
  STATIC_REQUIRE(refusal_of<ts::ops::reshard_rule<P<unreduced<"x">>>>(max_x) == message::reshard_kind);
  STATIC_REQUIRE(refusal_of<ts::ops::reshard_rule<P<unreduced_max<"x">>>>(plain) == message::reshard_kind);
  STATIC_REQUIRE(refusal_of<ts::ops::reshard_rule<P<unreduced_max<"x", "y">>>>(max_x) == message::reshard_kind);
}

namespace {
constexpr auto& indices = array<ts::i32, ts::shape<4>, P<>>;
constexpr auto& place = array<ts::i32, ts::shape<>, P<>>;
constexpr auto& sum_indices = array<ts::i32, ts::shape<4>, P<unreduced<"x">>>;
constexpr auto& red_indices = array<ts::i32, ts::shape<4>, P<reduced<"x">>>;
constexpr auto& four_sums = array<ts::f32, ts::shape<4>, P<unreduced<"x">>>;
constexpr auto& four_red = array<ts::f32, ts::shape<4>, P<reduced<"x">>>;
constexpr auto& four = array<ts::f32, ts::shape<4>, P<>>;
constexpr auto& image = array<ts::f32, ts::shape<2, 8, 4>, P<none, none, "x">>;
constexpr auto& taps = array<ts::f32, ts::shape<3, 4, 6>, P<none, "x">>;
using ts::sharding::scatter_kind;
template <scatter_kind Kind>
inline constexpr auto& scatter_rule = ts::ops::scatter_rule<0, Kind>;
}  // namespace

TEST_CASE("What is chosen of a marked array is marked alike; indices are not marked") {
  STATIC_REQUIRE(TYPE(ts::take<0>(sum_x, indices)) == "float32[4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::take<0>(red_x, indices)) == "float32[4]{R:x}");
  STATIC_REQUIRE(TYPE(ts::take_along_axis<0>(sum_x, indices, ts::mode_clip)) == "float32[4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::at(sum_x, indices).get()) == "float32[4]{U:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::take_rule<0, false>>(sum_x, sum_indices) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<ts::ops::take_rule<0, false>>(plain, red_indices) == message::reduced_operand);
  STATIC_REQUIRE(refusal_of<ts::ops::take_rule<0, false>>(max_x, indices) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<ts::ops::take_rule<0, false, ts::out_sharding_t<P<"x">>>>(sum_x, indices) ==
                 message::marks_changed);
  STATIC_REQUIRE(refusal_of<ts::ops::take_rule<0, false, ts::out_sharding_t<P<>>>>(sum_x, indices) ==
                 message::marks_changed);
}

TEST_CASE("Updates are added to an array that is unreduced as they are; extrema take none") {
  STATIC_REQUIRE(TYPE(ts::at(sum_x, indices).add(four_sums)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::at(sum_x, indices).set(four_sums)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::at(red_x, indices).add(four_red)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::at(red_x, indices).max(2)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::at<ts::range{0, 4}>(sum_x).set(four_sums)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::at<ts::range{0, 4}>(sum_x).add(four_sums)) == "float32[8]{U:x}");
  STATIC_REQUIRE(refusal_of<scatter_rule<scatter_kind::add>>(sum_x, four, indices) == message::scatter_sharding);
  STATIC_REQUIRE(refusal_of<scatter_rule<scatter_kind::add>>(plain, four_sums, indices) == message::scatter_sharding);
  STATIC_REQUIRE(refusal_of<scatter_rule<scatter_kind::add>>(sum_x, 1.0F, indices) == message::scatter_sharding);
  STATIC_REQUIRE(refusal_of<scatter_rule<scatter_kind::add>>(sum_x, four_red, indices) == message::scatter_sharding);
  STATIC_REQUIRE(refusal_of<scatter_rule<scatter_kind::max>>(sum_x, four_sums, indices) == message::unreduced_operand);
}

TEST_CASE("Parts at run-time places, copies and triangles are marked as what they are made of") {
  STATIC_REQUIRE(TYPE(ts::dynamic_slice<4>(sum_x, place)) == "float32[4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::dynamic_index_in_dim<0>(red_x, place)) == "float32[]{R:x}");
  STATIC_REQUIRE(TYPE(ts::dynamic_update_slice(sum_x, four_sums, place)) == "float32[8]{U:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::dynamic_update_rule<void>>(sum_x, four, place) ==
                 message::dynamic_update_sharding);
  STATIC_REQUIRE(refusal_of<ts::ops::dynamic_update_rule<P<>>>(sum_x, four, place) == message::dynamic_update_sharding);
  STATIC_REQUIRE(TYPE(ts::repeat<2>(sum_x)) == "float32[16]{U:x}");
  STATIC_REQUIRE(TYPE(ts::tile<2, 3>(red_x)) == "float32[2,24]{R:x}");
  STATIC_REQUIRE(TYPE(ts::roll<1, 0>(sum_x)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::tril(matrix<P<"y", none, unreduced<"x">>>)) == "float32[8@y,8]{U:x}");
}

TEST_CASE("A running sum is linear; other walks and orders take reduced arrays alone") {
  STATIC_REQUIRE(TYPE(ts::cumsum<0>(sum_x)) == "float32[8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::cumprod<0>(red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::sort<0>(red_x)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE(ts::argsort<0>(red_x)) == "int32[8]{R:x}");
  STATIC_REQUIRE(refusal_of<ts::ops::cumulative_rule<ts::graph::running::prod, 0>>(sum_x) ==
                 message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<ts::ops::cumulative_rule<ts::graph::running::sum, 0>>(max_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<ts::ops::sort_rule<0, -1>>(sum_x) == message::unreduced_operand);
}

TEST_CASE(
    "A convolution is a product: over its channels it may stay unreduced, that an operand is reduced is forgotten") {
  STATIC_REQUIRE(TYPE(ts::conv(image, taps, ts::out_sharding<P<unreduced<"x">>>)) == "float32[2,8,6]{U:x}");
  STATIC_REQUIRE(TYPE(ts::conv(array<ts::f32, ts::shape<2, 8, 4>, P<"x", reduced<"y">>>,
                               array<ts::f32, ts::shape<3, 4, 6>, P<reduced<"x">>>)) == "float32[2@x,8,6]");
  using spec_y = ts::out_sharding_t<P<unreduced<"y">>>;
  STATIC_REQUIRE(refusal_of<ts::ops::conv_rule<spec_y>>(image, taps) == message::matmul_unreduced);
  STATIC_REQUIRE(refusal_of<ts::ops::conv_rule<>>(array<ts::f32, ts::shape<2, 8, 4>, P<unreduced<"x">>>,
                                                  array<ts::f32, ts::shape<3, 4, 6>, P<>>) ==
                 message::unreduced_operand);
  STATIC_REQUIRE(TYPE(ts::avg_pool<ts::shape<2>>(array<ts::f32, ts::shape<2, 8, 4>, P<reduced<"y">>>)) ==
                 "float32[2,7,4]{R:y}");
}

TEST_CASE("Arrays made of nothing may be pending sums") {
  constexpr auto pending = ts::out_sharding<P<unreduced<"x">>>;
  STATIC_REQUIRE(TYPE(ts::zeros<ts::shape<4, 8>>(plain, pending)) == "float32[4,8]{U:x}");
  STATIC_REQUIRE(TYPE(ts::ones<ts::shape<4>, ts::i32>(plain, pending)) == "int32[4]{U:x}");
  STATIC_REQUIRE(TYPE(ts::iota<ts::shape<4>>(plain, ts::out_sharding<P<reduced<"y">>>)) == "int32[4]{R:y}");
  STATIC_REQUIRE(TYPE(ts::zeros_like(sum_x)) == "float32[8]{U:x}");
}

namespace {
constexpr auto silent_rule = [](std::span<const ts::aval> x, const ts::mesh_value&) { return ts::ruling{x[0]}; };
constexpr auto reduced_rule = ts::ops::keeps_reduced{silent_rule};
constexpr auto inventive_rule = [](std::span<const ts::aval> x, const ts::mesh_value&) {
  ts::aval result = x[0];
  result.unreduced = 1;
  return ts::ruling{result};
};
}  // namespace

TEST_CASE("An operation whose rule says nothing of unreduced and reduced arrays gets none and gives none") {
  STATIC_REQUIRE(refusal_of<silent_rule>(sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<silent_rule>(red_x) == message::reduced_operand);
  STATIC_REQUIRE(refusal_of<silent_rule>(plain) == message::none);
  STATIC_REQUIRE(refusal_of<reduced_rule>(sum_x) == message::unreduced_operand);
  STATIC_REQUIRE(refusal_of<reduced_rule>(red_x) == message::none);
  STATIC_REQUIRE(refusal_of<inventive_rule>(plain) == message::unreduced_result);
}
