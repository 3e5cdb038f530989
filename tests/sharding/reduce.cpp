// SPDX-License-Identifier: Apache-2.0
#include <tessera/sharding/reduce.hpp>

#include <catch2/catch.hpp>

#include <array>

namespace ts = tessera;
using ts::aval, ts::message;
using ts::sharding::named_dims, ts::sharding::reduce;

constexpr ts::mesh_value mesh{2, {"x", "y"}, {2, 4}};
constexpr ts::axis_list x = ts::axis_append(0, 0);
constexpr ts::axis_list y = ts::axis_append(0, 1);

constexpr aval cube{ts::f32, 3, {{8, x}, {4, y}, {3, 0}}};

TEST_CASE("Reduced dimensions vanish, or stay uncut with extent 1; the others keep their cuts") {
  STATIC_REQUIRE(reduce(cube, 0b001, false, nullptr, mesh).result == aval{ts::f32, 2, {{4, y}, {3, 0}}});
  STATIC_REQUIRE(reduce(cube, 0b101, false, nullptr, mesh).result == aval{ts::f32, 1, {{4, y}}});
  STATIC_REQUIRE(reduce(cube, 0b001, true, nullptr, mesh).result == aval{ts::f32, 3, {{1, 0}, {4, y}, {3, 0}}});
  STATIC_REQUIRE(reduce(cube, ts::sharding::all_dims(3), false, nullptr, mesh).result == ts::scalar_aval(ts::f32));
  STATIC_REQUIRE(reduce(cube, 0, false, nullptr, mesh).result == cube);
}

TEST_CASE("The result's cut may be chosen, by the axis that was reduced too") {
  constexpr ts::spec_value by_x{1, {x}, {}};
  constexpr ts::spec_value by_xx{2, {x, x}, {}};
  STATIC_REQUIRE(reduce(cube, 0b001, false, &by_x, mesh).result == aval{ts::f32, 2, {{4, x}, {3, 0}}});
  STATIC_REQUIRE(reduce(cube, 0b001, false, &by_xx, mesh).failure == message::spec_axis_twice);
  STATIC_REQUIRE(reduce(cube, 0b011, false, &by_x, mesh).failure == message::spec_indivisible);
}

TEST_CASE("Dimensions are counted from either end; one that is not there or named twice is refused") {
  STATIC_REQUIRE(named_dims(std::array{0, -1}, 3).dims == 0b101);
  STATIC_REQUIRE(named_dims(std::array{3}, 3).failure == message::reduce_axis);
  STATIC_REQUIRE(named_dims(std::array{-4}, 3).failure == message::reduce_axis);
  STATIC_REQUIRE(named_dims(std::array{2, -1}, 3).failure == message::reduce_axis_twice);
  STATIC_REQUIRE(named_dims(std::array{0}, 0).failure == message::reduce_axis);
}

TEST_CASE("A result element is made of all elements along the reduced dimensions") {
  STATIC_REQUIRE(ts::sharding::reduced_size(cube, 0b101) == 24 && ts::sharding::reduced_size(cube, 0) == 1);
}
