// SPDX-License-Identifier: Apache-2.0
#include <tessera/sharding/elementwise.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;
using ts::aval, ts::message;

constexpr ts::mesh_value mesh{3, {"x", "y", "z"}, {2, 4, 1}};
constexpr ts::axis_list x = ts::axis_append(0, 0);
constexpr ts::axis_list y = ts::axis_append(0, 1);
constexpr ts::axis_list z = ts::axis_append(0, 2);
constexpr ts::axis_list xy = ts::axis_append(x, 1);
constexpr ts::axis_list yx = ts::axis_append(y, 0);

constexpr aval matrix(ts::dim rows, ts::dim columns, ts::dtype type = ts::f32) { return {type, 2, {rows, columns}}; }
constexpr aval vector(ts::dim elements, ts::dtype type = ts::f32) { return {type, 1, {elements}}; }

constexpr ts::ruling join(const aval& a, const aval& b) {
  const aval operands[] = {a, b};
  return ts::sharding::elementwise(operands, mesh);
}

TEST_CASE("Equal cuts stay, an uncut dimension adapts to a cut one, on either side") {
  STATIC_REQUIRE(join(matrix({8, x}, {4, y}), matrix({8, x}, {4, y})).result == matrix({8, x}, {4, y}));
  STATIC_REQUIRE(join(matrix({8, x}, {4, 0}), matrix({8, 0}, {4, y})).result == matrix({8, x}, {4, y}));
  STATIC_REQUIRE(join(matrix({8, 0}, {4, 0}), matrix({8, xy}, {4, 0})).result == matrix({8, xy}, {4, 0}));
  STATIC_REQUIRE(join(matrix({8, z}, {4, 0}), matrix({8, 0}, {4, 0})).result == matrix({8, z}, {4, 0}));
}

TEST_CASE("Two different cuts of one dimension are refused: no prefix, no order, no size-1 axis is overlooked") {
  STATIC_REQUIRE(join(vector({8, x}), vector({8, y})).failure == message::elementwise_sharding);
  STATIC_REQUIRE(join(vector({8, x}), vector({8, xy})).failure == message::elementwise_sharding);
  STATIC_REQUIRE(join(vector({8, xy}), vector({8, yx})).failure == message::elementwise_sharding);
  STATIC_REQUIRE(join(vector({8, x}), vector({8, z})).failure == message::elementwise_sharding);
  STATIC_REQUIRE(join(vector({8, x}), vector({1, z})).failure == message::elementwise_sharding);
  STATIC_REQUIRE(join(matrix({8, x}, {4, 0}), matrix({8, 0}, {4, x})).failure == message::elementwise_duplicate);
  STATIC_REQUIRE(join(matrix({8, 0}, {8, x}), matrix({8, 0}, {8, y})).dimension == 1);
}

TEST_CASE("Extents broadcast from the last dimension; scalars are neutral") {
  STATIC_REQUIRE(join(matrix({8, x}, {4, 0}), vector({4, y})).result == matrix({8, x}, {4, y}));
  STATIC_REQUIRE(join(matrix({8, x}, {1, 0}), matrix({1, 0}, {4, y})).result == matrix({8, x}, {4, y}));
  STATIC_REQUIRE(join(ts::scalar_aval(ts::f32), vector({8, x})).result == vector({8, x}));
  STATIC_REQUIRE(join(vector({8, 0}), vector({4, 0})).failure == message::elementwise_shape);
  STATIC_REQUIRE(join(vector({0, 0}), vector({1, 0})).result == vector({0, 0}));
  STATIC_REQUIRE(join(vector({8, 0}), vector({8, 0}, ts::i32)).failure == message::elementwise_dtype);
}

TEST_CASE("An axis of size 1 stays on a dimension that is stretched") {
  constexpr aval thin = vector({1, z});
  STATIC_REQUIRE(join(thin, vector({8, 0})).result == vector({8, z}));
}

constexpr ts::ruling choose(const aval& predicate, const aval& on_true, const aval& on_false) {
  return ts::sharding::where(predicate, on_true, on_false, mesh);
}

TEST_CASE("where of three equal shapes wants equal specs; a scalar predicate is free") {
  STATIC_REQUIRE(choose(vector({8, x}, ts::bool_), vector({8, x}), vector({8, x})).result == vector({8, x}));
  STATIC_REQUIRE(choose(vector({8, x}, ts::bool_), vector({8, x}), vector({8, 0})).failure == message::where_sharding);
  STATIC_REQUIRE(choose(vector({8, 0}, ts::bool_), vector({8, x}), vector({8, x})).failure == message::where_sharding);
  STATIC_REQUIRE(choose(ts::scalar_aval(ts::bool_), vector({8, x}), vector({8, x})).result == vector({8, x}));
  STATIC_REQUIRE(choose(ts::scalar_aval(ts::bool_), vector({8, x}), vector({8, 0})).failure == message::where_sharding);
}

TEST_CASE("where of different shapes broadcasts, and uncut operands adapt") {
  STATIC_REQUIRE(choose(matrix({8, 0}, {1, 0}, ts::bool_), matrix({8, x}, {4, 0}), matrix({8, 0}, {4, 0})).result ==
                 matrix({8, x}, {4, 0}));
  STATIC_REQUIRE(choose(vector({8, x}, ts::bool_), vector({8, 0}), ts::scalar_aval(ts::f32)).result == vector({8, x}));
  STATIC_REQUIRE(choose(vector({8, x}, ts::bool_), vector({8, y}), ts::scalar_aval(ts::f32)).failure ==
                 message::elementwise_sharding);
  STATIC_REQUIRE(choose(vector({8, 0}), vector({8, 0}), vector({8, 0})).failure == message::where_predicate);
  STATIC_REQUIRE(choose(vector({8, 0}, ts::bool_), vector({8, 0}), vector({8, 0}, ts::i32)).failure ==
                 message::where_dtype);
}
