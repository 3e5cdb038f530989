// SPDX-License-Identifier: Apache-2.0
#include <tessera/sharding/matmul.hpp>

#include <catch2/catch.hpp>

#include <optional>

namespace ts = tessera;
using ts::aval, ts::dim, ts::message;

constexpr ts::mesh_value mesh{2, {"x", "y"}, {2, 4}};
constexpr ts::axis_list x = ts::axis_append(0, 0);
constexpr ts::axis_list y = ts::axis_append(0, 1);

constexpr aval array(std::initializer_list<dim> dims, ts::dtype type = ts::f32) {
  aval a = ts::scalar_aval(type);
  for (const dim& d : dims) a.dims[a.rank++] = d;
  return a;
}

constexpr ts::spec_value spec(std::initializer_list<ts::axis_list> entries) {
  ts::spec_value s;
  for (ts::axis_list e : entries) s.dims[s.rank++] = e;
  return s;
}

constexpr ts::ruling product(const aval& a, const aval& b) { return ts::sharding::matmul(a, b, nullptr, mesh); }
constexpr ts::ruling product(const aval& a, const aval& b, const ts::spec_value& out) {
  return ts::sharding::matmul(a, b, &out, mesh);
}

TEST_CASE("A product takes its rows from the left, its columns from the right") {
  STATIC_REQUIRE(product(array({{8, x}, {16, 0}}), array({{16, 0}, {8, y}})).result == array({{8, x}, {8, y}}));
  STATIC_REQUIRE(product(array({{3, 0}, {8, x}, {16, 0}}), array({{16, 0}, {8, y}})).result ==
                 array({{3, 0}, {8, x}, {8, y}}));
  STATIC_REQUIRE(product(array({{4, x}, {8, 0}, {16, 0}}), array({{4, x}, {16, 0}, {8, y}})).result ==
                 array({{4, x}, {8, 0}, {8, y}}));
  STATIC_REQUIRE(product(array({{8, 0}, {0, 0}}), array({{0, 0}, {8, 0}})).result == array({{8, 0}, {8, 0}}));
}

TEST_CASE("A cut contracting dimension is refused, in one operand or in both, unless the result's cut is chosen") {
  constexpr aval left = array({{8, 0}, {16, x}});
  constexpr aval right = array({{16, x}, {8, 0}});
  STATIC_REQUIRE(product(left, array({{16, 0}, {8, 0}})).failure == message::matmul_contracting_one);
  STATIC_REQUIRE(product(array({{8, 0}, {16, 0}}), right).failure == message::matmul_contracting_one);
  STATIC_REQUIRE(product(left, right).failure == message::matmul_contracting_both);
  STATIC_REQUIRE(product(left, array({{16, y}, {8, 0}})).failure == message::matmul_contracting_both);
  STATIC_REQUIRE(product(left, right, spec({})).result == array({{8, 0}, {8, 0}}));
  STATIC_REQUIRE(product(left, right, spec({x})).result == array({{8, x}, {8, 0}}));
  STATIC_REQUIRE(product(left, right, spec({0, x})).result == array({{8, 0}, {8, x}}));
}

TEST_CASE("A chosen cut must be legal itself") {
  constexpr aval left = array({{8, 0}, {16, x}});
  constexpr aval right = array({{16, x}, {6, 0}});
  STATIC_REQUIRE(product(left, right, spec({x, x})).failure == message::spec_axis_twice);
  STATIC_REQUIRE(product(left, right, spec({0, y})).failure == message::spec_indivisible);
  STATIC_REQUIRE(product(left, right, spec({0, 0, x})).failure == message::spec_too_long);
}

TEST_CASE("One axis on rows and columns is refused, unless the result's cut is chosen") {
  constexpr aval left = array({{8, x}, {16, 0}});
  constexpr aval right = array({{16, 0}, {8, x}});
  STATIC_REQUIRE(product(left, right).failure == message::matmul_duplicate);
  STATIC_REQUIRE(product(left, right, spec({x})).result == array({{8, x}, {8, 0}}));
}

TEST_CASE("matmul wants batch dimensions cut alike, even where the result's cut is chosen; dot_general then does not") {
  constexpr aval left = array({{4, x}, {8, 0}, {16, 0}});
  constexpr aval right = array({{4, 0}, {16, 0}, {8, 0}});
  STATIC_REQUIRE(product(left, right).failure == message::matmul_batch_sharding);
  STATIC_REQUIRE(product(left, right, spec({x})).failure == message::matmul_batch_sharding);
  constexpr ts::spec_value chosen = spec({x});
  STATIC_REQUIRE(ts::sharding::dot_general(left, right, ts::sharding::matmul_dims(3, 3), &chosen, mesh).result ==
                 array({{4, x}, {8, 0}, {8, 0}}));
}

TEST_CASE("Faults of extents, ranks and dtypes come before faults of sharding") {
  STATIC_REQUIRE(product(array({{8, 0}, {16, x}}), array({{15, x}, {8, 0}})).failure == message::matmul_extent);
  STATIC_REQUIRE(product(array({{4, x}, {8, 0}, {16, 0}}), array({{2, 0}, {16, 0}, {8, 0}})).failure ==
                 message::matmul_batch_extent);
  STATIC_REQUIRE(product(array({}), array({{16, 0}, {8, 0}})).failure == message::matmul_rank);
  STATIC_REQUIRE(product(array({{8, 0}, {16, 0}}), array({{16, 0}, {8, 0}}, ts::f64)).failure == message::matmul_dtype);
  STATIC_REQUIRE(product(array({{8, 0}, {16, 0}}, ts::bool_), array({{16, 0}, {8, 0}}, ts::bool_)).failure ==
                 message::matmul_bool);
}

TEST_CASE("A matrix meets every matrix of a batch, a vector is a matrix of one row or column") {
  STATIC_REQUIRE(product(array({{8, 0}, {16, 0}}), array({{4, 0}, {16, 0}, {2, 0}})).result ==
                 array({{4, 0}, {8, 0}, {2, 0}}));
  STATIC_REQUIRE(product(array({{16, 0}}), array({{16, 0}, {8, 0}})).result == array({{8, 0}}));
}

TEST_CASE("Lists of dimensions keep their order") {
  constexpr ts::sharding::dim_list list = ts::sharding::dim_append(ts::sharding::dim_append(0, 2), 0);
  STATIC_REQUIRE(ts::sharding::dim_count(list) == 2 && ts::sharding::dim_at(list, 0) == 2 &&
                 ts::sharding::dim_at(list, 1) == 0);
  STATIC_REQUIRE(ts::sharding::dim_in(list, 0) && !ts::sharding::dim_in(list, 1));
  STATIC_REQUIRE(ts::sharding::free_dims(4, ts::sharding::dim_append(0, 3), ts::sharding::dim_append(0, 0)) ==
                 ts::sharding::dim_append(ts::sharding::dim_append(0, 1), 2));
}
