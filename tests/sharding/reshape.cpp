// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/shards.hpp>
#include <tessera/sharding/reshape.hpp>

#include <catch2/catch.hpp>

#include <vector>

namespace ts = tessera;
using ts::aval, ts::dim, ts::message;

constexpr ts::mesh_value mesh{3, {"x", "y", "z"}, {2, 4, 1}};
constexpr ts::axis_list x = ts::axis_append(0, 0);
constexpr ts::axis_list y = ts::axis_append(0, 1);
constexpr ts::axis_list z = ts::axis_append(0, 2);
constexpr ts::axis_list xy = ts::axis_append(x, 1);

constexpr aval array(std::initializer_list<dim> dims) {
  aval a;
  for (const dim& d : dims) a.dims[a.rank++] = d;
  return a;
}

constexpr ts::ruling to(const aval& operand, std::initializer_list<std::int64_t> extents) {
  aval target;
  for (std::int64_t e : extents) target.dims[target.rank++].extent = e;
  return ts::sharding::reshape(operand, target, nullptr, mesh);
}

TEST_CASE("Dimensions of extent 1 come and go; cuts follow their dimensions") {
  STATIC_REQUIRE(to(array({{16, x}, {1, 0}}), {1, 16, 1}).result == array({{1, 0}, {16, x}, {1, 0}}));
  STATIC_REQUIRE(to(array({{1, z}, {8, y}}), {8}).result == array({{8, y}}));
  STATIC_REQUIRE(to(array({{1, 0}, {8, y}, {1, 0}, {4, x}}), {8, 4, 1}).result == array({{8, y}, {4, x}, {1, 0}}));
}

TEST_CASE("A split hands axes on, major first, while blocks stay where they are") {
  STATIC_REQUIRE(to(array({{8, xy}}), {2, 4}).result == array({{2, x}, {4, y}}));
  STATIC_REQUIRE(to(array({{16, xy}}), {8, 2}).result == array({{8, xy}, {2, 0}}));
  STATIC_REQUIRE(to(array({{8, x}, {5, 0}}), {2, 4, 5}).result == array({{2, x}, {4, 0}, {5, 0}}));
  STATIC_REQUIRE(to(array({{3, 0}, {8, y}}), {3, 4, 2}).result == array({{3, 0}, {4, y}, {2, 0}}));
  STATIC_REQUIRE(to(array({{8, y}}), {2, 4}).failure == message::reshape_split);
  STATIC_REQUIRE(to(array({{6, x}}), {3, 2}).failure == message::reshape_split);
}

TEST_CASE("A merge joins axes where every block stays where it is, and is refused elsewhere") {
  STATIC_REQUIRE(to(array({{4, x}, {8, 0}}), {32}).result == array({{32, x}}));
  STATIC_REQUIRE(to(array({{2, x}, {8, y}}), {16}).result == array({{16, xy}}));
  STATIC_REQUIRE(to(array({{4, x}, {8, y}}), {32}).failure == message::reshape_merge);
  STATIC_REQUIRE(to(array({{4, 0}, {8, x}}), {32}).failure == message::reshape_merge);
  STATIC_REQUIRE(to(array({{2, x}, {2, 0}, {4, y}}), {16}).failure == message::reshape_merge);
}

TEST_CASE("Other changes of a cut array are refused; an uncut one may become anything of its size") {
  STATIC_REQUIRE(to(array({{4, x}, {6, 0}}), {6, 4}).failure == message::reshape_unsupported);
  STATIC_REQUIRE(to(array({{4, 0}, {6, 0}, {8, x}}), {2, 2, 3, 2, 8}).failure == message::reshape_unsupported);
  STATIC_REQUIRE(to(array({{4, 0}, {6, 0}}), {6, 4}).result == array({{6, 0}, {4, 0}}));
  STATIC_REQUIRE(to(array({{4, 0}, {6, 0}}), {5, 4}).failure == message::reshape_size);
  STATIC_REQUIRE(to(array({{0, 0}, {6, 0}}), {0, 9}).result == array({{0, 0}, {9, 0}}));
}

TEST_CASE("Extents below zero are refused, even if their product would do") {
  STATIC_REQUIRE(to(array({{4, 0}, {6, 0}}), {-4, -6}).failure == message::shape_extent);
  constexpr aval target = array({{-2, 0}, {8, 0}});
  STATIC_REQUIRE(ts::sharding::broadcast_to(array({{8, 0}}), target, nullptr, mesh).failure == message::shape_extent);
}

namespace {

/// The row-major numbers of the elements that a device holds, in the order of its block.
std::vector<std::int64_t> elements_of(const aval& a, std::int64_t device) {
  const aval block = ts::local_block(a, mesh);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < block.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t number = 0;
    std::int64_t stride = 1;
    for (int d = a.rank - 1; d >= 0; --d) {
      const std::int64_t place =
          rest % block.dims[d].extent + ts::block_index(device, a.dims[d].axes, mesh) * block.dims[d].extent;
      rest /= block.dims[d].extent;
      number += place * stride;
      stride *= a.dims[d].extent;
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// All ways to write `size` as `rank` factors.
void factorisations(std::int64_t size, int rank, aval so_far, std::vector<aval>& all) {
  if (so_far.rank == rank - 1) {
    so_far.dims[so_far.rank++].extent = size;
    all.push_back(so_far);
    return;
  }
  for (std::int64_t f = 1; f <= size; ++f) {
    if (size % f != 0) continue;
    aval next = so_far;
    next.dims[next.rank++].extent = f;
    factorisations(size / f, rank, next, all);
  }
}

}  // namespace

TEST_CASE("Whatever reshape is let through without out_sharding leaves every device its elements") {
  std::vector<aval> shapes;
  for (int rank = 1; rank <= 3; ++rank) factorisations(16, rank, aval{}, shapes);
  const ts::axis_list cuts[] = {0, x, y, z, xy, ts::axis_append(y, 0)};
  int passed = 0;
  int refused = 0;
  for (const aval& shape : shapes)
    for (int choice = 0; choice < 216; ++choice) {
      aval operand = shape;
      int rest = choice;
      for (int d = 0; d < operand.rank; ++d, rest /= 6) operand.dims[d].axes = cuts[rest % 6];
      if (rest != 0 || !ts::check_cuts(operand, mesh).ok()) continue;
      for (const aval& target : shapes) {
        const ts::ruling ruled = ts::sharding::reshape(operand, target, nullptr, mesh);
        ++(ruled.ok() ? passed : refused);
        if (!ruled.ok()) continue;
        bool same = ts::check_cuts(ruled.result, mesh).ok();
        for (std::int64_t device = 0; same && device < mesh.devices(); ++device)
          same = elements_of(operand, device) == elements_of(ruled.result, device);
        if (same) continue;
        ts::text_buffer text;
        ts::write_aval(text, operand, mesh);
        text << " -> ";
        ts::write_aval(text, ruled.result, mesh);
        FAIL_CHECK(std::string(text.view()));
      }
    }
  CHECK(passed > 1000);
  CHECK(refused > 1000);
}

constexpr ts::sharding::dim_list order(std::initializer_list<int> dims) {
  ts::sharding::dim_list list = 0;
  for (int d : dims) list = ts::sharding::dim_append(list, d);
  return list;
}

TEST_CASE("transpose moves cuts with their dimensions, and wants a permutation") {
  constexpr aval cube = array({{8, x}, {4, y}, {3, 0}});
  STATIC_REQUIRE(ts::sharding::transpose(cube, order({2, 0, 1})).result == array({{3, 0}, {8, x}, {4, y}}));
  STATIC_REQUIRE(ts::sharding::transpose(cube, order({0, 0, 1})).failure == message::transpose_permutation);
  STATIC_REQUIRE(ts::sharding::transpose(cube, order({0, 1})).failure == message::transpose_permutation);
  STATIC_REQUIRE(ts::sharding::transpose(cube, order({0, 1, 3})).failure == message::transpose_permutation);
}

TEST_CASE("broadcast_to keeps mapped cuts; new and stretched dimensions are uncut unless told") {
  constexpr aval row = array({{8, y}});
  STATIC_REQUIRE(ts::sharding::broadcast_to(row, array({{2, 0}, {8, 0}}), nullptr, mesh).result ==
                 array({{2, 0}, {8, y}}));
  STATIC_REQUIRE(ts::sharding::broadcast_to(array({{1, z}}), array({{8, 0}}), nullptr, mesh).result == array({{8, 0}}));
  constexpr ts::spec_value both{2, {x, y}, {}};
  constexpr ts::spec_value first{1, {x}, {}};
  STATIC_REQUIRE(ts::sharding::broadcast_to(row, array({{2, 0}, {8, 0}}), &both, mesh).result ==
                 array({{2, x}, {8, y}}));
  STATIC_REQUIRE(ts::sharding::broadcast_to(row, array({{2, 0}, {8, 0}}), &first, mesh).failure ==
                 message::broadcast_sharding);
  STATIC_REQUIRE(ts::sharding::broadcast_to(row, array({{2, 0}, {4, 0}}), nullptr, mesh).failure ==
                 message::broadcast_shape);
  STATIC_REQUIRE(ts::sharding::broadcast_to(array({{1, 0}, {8, 0}}), array({{8, 0}}), nullptr, mesh).failure ==
                 message::broadcast_shape);
}
