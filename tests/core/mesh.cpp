// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/mesh.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

TEST_CASE("A mesh has its axes in order, by name and by place") {
  static_assert(cluster::devices == 8 && cluster::value.rank == 2 && cluster::value.devices() == 8);
  static_assert(cluster::value.name(0) == "data" && cluster::value.size(0) == 2);
  static_assert(cluster::value.name(1) == "model" && cluster::value.size(1) == 4);
  static_assert(cluster::value.find("model") == 1 && cluster::value.find("mode") == -1 && cluster::value.find("") == -1);
  static_assert(cluster::value.distinct());
  SUCCEED();
}

TEST_CASE("A mesh without axes is one device; an axis of size 1 is an axis") {
  static_assert(ts::mesh<>::devices == 1 && ts::mesh<>::value.rank == 0);
  using thin = ts::mesh<ts::axis<"stage", 1>, ts::axis<"data", 8>>;
  static_assert(thin::value.rank == 2 && thin::devices == 8 && thin::value.find("stage") == 0);
  SUCCEED();
}

TEST_CASE("An open mesh has names and no sizes yet") {
  using open = ts::open_mesh<"data", "model">;
  static_assert(open::open && !cluster::open);
  static_assert(open::value.rank == 2 && open::value.find("model") == 1 && open::value.size(1) == 0);
  SUCCEED();
}

TEST_CASE("Two axes of one name are seen") {
  constexpr ts::mesh_value twice{2, {"data", "data"}, {2, 4}};
  static_assert(!twice.distinct());
  SUCCEED();
}
