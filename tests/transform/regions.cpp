// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/lowered.hpp>
#include <tessera/ops.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;
using ts::P, ts::none, ts::in_sharding, ts::out_sharding;

namespace {

using square = ts::mesh<ts::axis<"x", 2>, ts::axis<"y", 2>>;
using mixed = ts::mesh<ts::axis<"x", 4>, ts::auto_axis<"y", 2>>;
using automatic = ts::mesh<ts::auto_axis<"x", 2>, ts::auto_axis<"y", 2>>;

template <class Mesh, class Shape, class Spec = P<>>
using array = ts::tensor<ts::f32, Shape, Spec, Mesh>;
template <class Mesh, class Shape, class Spec = P<>>
constexpr ts::expr<array<Mesh, Shape, Spec>::type, Mesh> handle{};

#define TYPE_OF(...) ts::type_text<std::remove_cvref_t<decltype(__VA_ARGS__)>>()

}  // namespace

TEST_CASE("Inside auto_axes types do not name the axes; results lie as out_sharding says") {
  const auto sum = ts::auto_axes(
      [](auto a, auto b) {
        STATIC_REQUIRE(ts::type_text<decltype(a)>() == "float32[4,4]");
        STATIC_REQUIRE(TYPE_OF(a + b) == "float32[4,4]");
        return a + b;
      },
      out_sharding<P<"x">>);
  STATIC_REQUIRE(TYPE_OF(sum(handle<square, ts::shape<4, 4>, P<"x">>, handle<square, ts::shape<4, 4>, P<none, "x">>)) ==
                 "float32[4@x,4]");
}

TEST_CASE("Axes that auto_axes does not name stay in the types") {
  const auto product = ts::auto_axes<"x">(
      [](auto a, auto b) {
        STATIC_REQUIRE(ts::type_text<decltype(a)>() == "float32[8@y,4]");
        STATIC_REQUIRE(TYPE_OF(ts::matmul(a, b)) == "float32[8@y,6]");
        return std::pair(ts::matmul(a, b), 2 * a);
      },
      out_sharding<P<"y">>, out_sharding<P<"y", "x">>);
  using result =
      decltype(product(handle<square, ts::shape<8, 4>, P<"y", "x">>, handle<square, ts::shape<4, 6>, P<"x">>));
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<0, result>>() == "float32[8@y,6]");
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<1, result>>() == "float32[8@y,4@x]");
}

TEST_CASE("explicit_axes takes axes back, and its results are without them") {
  const auto sine = ts::explicit_axes(
      [](auto a) {
        STATIC_REQUIRE(ts::type_text<decltype(a)>() == "float32[8@x,2@y]");
        return ts::sin(a);
      },
      in_sharding<P<"x", "y">>);
  STATIC_REQUIRE(TYPE_OF(sine(handle<automatic, ts::shape<8, 2>>)) == "float32[8,2]");
}

TEST_CASE("An axis of a mesh that is Auto is in no array's type") {
  STATIC_REQUIRE(ts::type_text<array<mixed, ts::shape<8, 4>, P<"x", "y">>>() == "float32[8@x,4]");
  STATIC_REQUIRE(ts::type_text<array<mixed, ts::shape<8, 4>, P<ts::axes<"y", "x">>>>() == "float32[8@x,4]");
}

TEST_CASE("with_sharding_constraint checks Explicit axes and steers Auto ones") {
  STATIC_REQUIRE(TYPE_OF(ts::with_sharding_constraint<P<"x">>(handle<square, ts::shape<8, 4>, P<"x">>)) ==
                 "float32[8@x,4]");
  STATIC_REQUIRE(TYPE_OF(ts::with_sharding_constraint<P<none, "y">>(handle<mixed, ts::shape<8, 4>, P<"x">>)) ==
                 "float32[8@x,4]");
}

inline constexpr auto layer = [](auto x, auto w1, auto w2) {
  return ts::auto_axes<"y">([](auto a, auto b, auto c) { return ts::matmul(ts::relu(ts::matmul(a, b)), c); },
                            out_sharding<P<"x">>)(x, w1, w2);
};

TEST_CASE("Propagation keeps a column- and row-cut pair of products to one all-reduce") {
  using program = ts::lowered<layer, array<square, ts::shape<8, 4>, P<"x">>,
                              array<square, ts::shape<4, 6>, P<none, "y">>, array<square, ts::shape<6, 4>, P<"y">>>;
  STATIC_REQUIRE(program::collectives().all_reduce == 1);
  STATIC_REQUIRE(program::collectives().all_gather == 0);
}

inline constexpr auto steered = [](auto x, auto w) {
  const auto h = ts::with_sharding_constraint<P<none, "y">>(ts::relu(ts::matmul(x, w)));
  return ts::sum(h);
};

TEST_CASE("A constraint on an Auto axis cuts what it is about") {
  using program = ts::lowered<steered, array<mixed, ts::shape<8, 4>>, array<mixed, ts::shape<4, 6>>>;
  STATIC_REQUIRE(program::collectives().all_reduce == 1);
}

inline constexpr auto summed = [](auto x) { return ts::sum<4>(x); };

TEST_CASE("A sum over the fifth dimension is planned where axes are left to the compiler") {
  using program = ts::lowered<summed, array<mixed, ts::shape<4, 2, 2, 2, 2>, P<"x">>>;
  STATIC_REQUIRE(program::collectives().all_reduce == 0);
}
