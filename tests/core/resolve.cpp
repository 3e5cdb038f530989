// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/resolve.hpp>

#include <catch2/catch.hpp>

#include <concepts>

namespace ts = tessera;
using ts::axes, ts::message, ts::none, ts::P, ts::shape;

using grid = ts::mesh<ts::axis<"x", 2>, ts::axis<"y", 4>, ts::axis<"z", 1>>;

template <class Shape, class Spec>
constexpr ts::ruling ruled = ts::resolve<ts::f32, Shape, Spec, grid>();

TEST_CASE("A spec that fits becomes the axes of each dimension") {
  STATIC_REQUIRE(ruled<shape<8, 4>, P<"x", "y">>.ok());
  STATIC_REQUIRE(ruled<shape<8, 4>, P<"x", "y">>.result.dims[1].axes == ts::axis_append(0, 1));
  STATIC_REQUIRE(ruled<shape<8, 4>, P<>>.result.cut() == 0);
  STATIC_REQUIRE(ruled<shape<8>, P<axes<"x", "y">>>.result.dims[0].axes == ts::axis_append(ts::axis_append(0, 0), 1));
  STATIC_REQUIRE(ruled<shape<8>, P<"z">>.result.dims[0].axes != 0);
  STATIC_REQUIRE(ruled<shape<0>, P<"x">>.ok());
}

TEST_CASE("What is wrong with a spec is said with its dimension and axis") {
  STATIC_REQUIRE(ruled<shape<8>, P<"q">>.failure == message::spec_unknown_axis && ruled<shape<8>, P<"q">>.axis == "q");
  STATIC_REQUIRE(ruled<shape<8>, P<none, "x">>.failure == message::spec_too_long);
  STATIC_REQUIRE(ruled<shape<>, P<"x">>.failure == message::spec_too_long);
  STATIC_REQUIRE(ruled<shape<8, 8>, P<"x", "x">>.failure == message::spec_axis_twice);
  STATIC_REQUIRE(ruled<shape<8, 8>, P<"x", axes<"y", "x">>>.failure == message::spec_axis_twice);
  STATIC_REQUIRE(ruled<shape<8, 8>, P<axes<"x", "x">>>.failure == message::spec_axis_twice);
  STATIC_REQUIRE(ruled<shape<8, 6>, P<"x", "y">>.failure == message::spec_indivisible &&
                 ruled<shape<8, 6>, P<"x", "y">>.dimension == 1 && ruled<shape<8, 6>, P<"x", "y">>.axis == "y");
  STATIC_REQUIRE(ruled<shape<4>, P<axes<"x", "y">>>.failure == message::spec_indivisible);
  STATIC_REQUIRE(ruled<shape<8, -1>, P<>>.failure == message::shape_extent && ruled<shape<8, -1>, P<>>.dimension == 1);
  STATIC_REQUIRE(ruled<shape<1, 1, 1, 1, 1, 1, 1, 1, 1>, P<>>.failure == message::shape_rank);
  STATIC_REQUIRE(ruled<shape<1, 1, 1, 1, 1, 1, 1, 1>, P<>>.ok());
}

TEST_CASE("The most basic fault is reported: an unknown axis before a spec that is too long") {
  STATIC_REQUIRE(ruled<shape<8>, P<"q", "x">>.failure == message::spec_unknown_axis);
  STATIC_REQUIRE(ruled<shape<7>, P<"x", "x">>.failure == message::spec_too_long);
}

TEST_CASE("The nearest extent that would do is below or above, never zero") {
  STATIC_REQUIRE(ts::nearest_divisible(30, 4) == 28 && ts::nearest_divisible(31, 4) == 32 &&
                 ts::nearest_divisible(33, 4) == 32);
  STATIC_REQUIRE(ts::nearest_divisible(1, 8) == 8 && ts::nearest_divisible(7, 8) == 8);
  STATIC_REQUIRE(ts::nearest_divisible(10, 3) == 9 && ts::nearest_divisible(11, 3) == 12);
}

template <class Shape, class Spec>
constexpr ts::text_buffer place() {
  ts::text_buffer out;
  ts::write_place(out, ruled<Shape, Spec>, ts::plain_aval<ts::f32, Shape>(), ts::read_spec<Spec>(grid::value),
                  grid::value);
  return out;
}

TEST_CASE("The place of a fault names extent, dimension, axis, its size and the nearest extent") {
  STATIC_REQUIRE(place<shape<8, 30>, P<"x", "y">>().view() ==
                 ", dimension 1 of extent 30, axis y of size 4, 4 devices, nearest extent 28");
  STATIC_REQUIRE(place<shape<30>, P<axes<"x", "y">>>().view() ==
                 ", dimension 0 of extent 30, axis x of size 2, 8 devices, nearest extent 32");
  STATIC_REQUIRE(place<shape<8>, P<"q">>().view() == ", dimension 0 of extent 8, axis q, the mesh has x y z");
}

TEST_CASE("A spec that a value already has is left as it is, another one replaces it") {
  constexpr ts::aval cut = ruled<shape<8, 8>, P<"x">>.result;
  STATIC_REQUIRE(ts::with_spec(cut, ts::read_spec<P<"x">>(grid::value), grid::value).result == cut);
  STATIC_REQUIRE(ts::with_spec(cut, ts::read_spec<P<none, "x">>(grid::value), grid::value).result ==
                 ruled<shape<8, 8>, P<none, "x">>.result);
}

TEST_CASE("The spec of a value is the type that the user wrote") {
  STATIC_REQUIRE(std::same_as<ts::spec_type<ruled<shape<8, 4>, P<"x", none>>.result, grid>, P<"x">>);
  STATIC_REQUIRE(
      std::same_as<ts::spec_type<ruled<shape<1, 8>, P<none, axes<"y", "x">>>.result, grid>, P<none, axes<"y", "x">>>);
}

TEST_CASE("Over an open mesh any extent passes, until the size of its axes is known") {
  STATIC_REQUIRE(ts::resolve<ts::f32, shape<7>, P<"x">, ts::open_mesh<"x">>().ok());
  STATIC_REQUIRE(!ts::resolve<ts::f32, shape<7>, P<"x">, grid>().ok());
}
