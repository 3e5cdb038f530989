// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/mesh.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

TEST_CASE("A mesh has its axes in order, by name and by place") {
  STATIC_REQUIRE(cluster::devices == 8 && cluster::value.rank == 2 && cluster::value.devices() == 8);
  STATIC_REQUIRE(cluster::value.name(0) == "data" && cluster::value.size(0) == 2);
  STATIC_REQUIRE(cluster::value.name(1) == "model" && cluster::value.size(1) == 4);
  STATIC_REQUIRE(cluster::value.find("model") == 1 && cluster::value.find("mode") == -1 &&
                 cluster::value.find("") == -1);
  STATIC_REQUIRE(cluster::value.distinct());
}

TEST_CASE("A mesh without axes is one device; an axis of size 1 is an axis") {
  STATIC_REQUIRE(ts::mesh<>::devices == 1 && ts::mesh<>::value.rank == 0);
  using thin = ts::mesh<ts::axis<"stage", 1>, ts::axis<"data", 8>>;
  STATIC_REQUIRE(thin::value.rank == 2 && thin::devices == 8 && thin::value.find("stage") == 0);
}

TEST_CASE("An open mesh has names and no sizes yet") {
  using open = ts::open_mesh<"data", "model">;
  STATIC_REQUIRE(open::open && !cluster::open);
  STATIC_REQUIRE(open::value.rank == 2 && open::value.find("model") == 1 && open::value.size(1) == 0);
}

TEST_CASE("Two axes of one name are seen") {
  constexpr ts::mesh_value twice{2, {"data", "data"}, {2, 4}};
  STATIC_REQUIRE(!twice.distinct());
}
