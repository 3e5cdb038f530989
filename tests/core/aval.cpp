// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/aval.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;

constexpr ts::mesh_value mesh{3, {"x", "y", "z"}, {2, 4, 1}};
constexpr ts::axis_list x = ts::axis_append(0, 0);
constexpr ts::axis_list y = ts::axis_append(0, 1);
constexpr ts::axis_list xy = ts::axis_append(x, 1);
constexpr ts::axis_list yx = ts::axis_append(y, 0);

constexpr ts::aval matrix(ts::axis_list rows, ts::axis_list columns) {
  return {ts::f32, 2, {{8, rows}, {16, columns}}};
}

TEST_CASE("A list of axes keeps its order, a set does not") {
  STATIC_REQUIRE(xy != yx && ts::set_of(xy) == ts::set_of(yx));
  STATIC_REQUIRE(ts::axis_count(xy) == 2 && ts::axis_at(xy, 0) == 0 && ts::axis_at(xy, 1) == 1);
  STATIC_REQUIRE(ts::axis_concat(x, y) == xy && ts::axis_concat(0, y) == y && ts::axis_concat(y, 0) == y);
  STATIC_REQUIRE(ts::starts_with(xy, x) && ts::starts_with(xy, xy) && ts::starts_with(xy, 0) &&
                 !ts::starts_with(xy, y) && !ts::starts_with(x, xy));
  STATIC_REQUIRE(ts::without_head(xy, x) == y && ts::without_head(xy, 0) == xy && ts::without_head(xy, xy) == 0);
  STATIC_REQUIRE(ts::devices_along(xy, mesh) == 8 && ts::devices_in(ts::set_of(xy), mesh) == 8 &&
                 ts::devices_in(0, mesh) == 1);
}

constexpr bool eight_axes_fit() {
  ts::axis_list all = 0;
  for (int i = 0; i < ts::max_mesh_axes; ++i) all = ts::axis_append(all, i);
  return ts::axis_count(all) == 8 && ts::starts_with(all, all) && ts::without_head(all, all) == 0 &&
         ts::set_of(all) == 255;
}

TEST_CASE("A dimension may be cut by all axes a mesh can have") {
  static_assert(eight_axes_fit());
  CHECK(eight_axes_fit());
}

TEST_CASE("An abstract value knows its elements, bytes and the axes that cut it") {
  STATIC_REQUIRE(matrix(x, y).size() == 128 && matrix(x, y).bytes() == 512 && matrix(x, y).cut() == 3);
  STATIC_REQUIRE(matrix(x, y).same_shape(matrix(0, 0)) && !matrix(x, y).same_spec(matrix(0, 0)));
  STATIC_REQUIRE(matrix(x, x).axis_on_two_dims() && matrix(xy, x).axis_on_two_dims() &&
                 !matrix(x, y).axis_on_two_dims());
  STATIC_REQUIRE(ts::scalar_aval(ts::i32).size() == 1 && ts::scalar_aval(ts::i32).rank == 0);
}

TEST_CASE("A device's block has its share of each cut extent") {
  STATIC_REQUIRE(ts::local_block(matrix(x, y), mesh) == ts::aval{ts::f32, 2, {{4, 0}, {4, 0}}});
  STATIC_REQUIRE(ts::local_block(matrix(xy, 0), mesh) == ts::aval{ts::f32, 2, {{1, 0}, {16, 0}}});
  STATIC_REQUIRE(ts::local_block(matrix(0, 0), mesh) == matrix(0, 0));
}

TEST_CASE("Axes are found again by name in another mesh") {
  constexpr ts::mesh_value turned{2, {"y", "x"}, {4, 2}};
  STATIC_REQUIRE(ts::rebind(matrix(xy, 0), mesh, turned) == matrix(yx, 0));
  STATIC_REQUIRE(ts::rebind_set(0b10, mesh, turned) == 0b01);
}

constexpr ts::text_buffer printed(const ts::aval& a) {
  ts::text_buffer out;
  ts::write_aval(out, a, mesh);
  return out;
}

constexpr ts::aval with_sets(ts::axis_set varying, ts::axis_set unreduced, ts::axis_set reduced) {
  ts::aval a = matrix(0, 0);
  a.varying = varying, a.unreduced = unreduced, a.reduced = reduced;
  return a;
}

TEST_CASE("A type prints its dtype, extents and axes, then what is varying, unreduced and reduced") {
  STATIC_REQUIRE(printed(matrix(x, y)).view() == "float32[8@x,16@y]");
  STATIC_REQUIRE(printed(matrix(xy, 0)).view() == "float32[8@(x,y),16]");
  STATIC_REQUIRE(printed(matrix(yx, 0)).view() == "float32[8@(y,x),16]");
  STATIC_REQUIRE(printed(ts::scalar_aval(ts::bool_)).view() == "bool[]");
  STATIC_REQUIRE(printed(with_sets(1, 0, 0)).view() == "float32[8,16]{V:x}");
  STATIC_REQUIRE(printed(with_sets(0, 3, 0)).view() == "float32[8,16]{U:x,y}");
  STATIC_REQUIRE(printed(with_sets(1, 2, 4)).view() == "float32[8,16]{V:x}{U:y}{R:z}");
}
