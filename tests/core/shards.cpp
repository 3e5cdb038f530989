// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/shards.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;

constexpr ts::mesh_value mesh{3, {"a", "b", "c"}, {2, 3, 4}};

TEST_CASE("Devices are numbered row-major over the axes") {
  STATIC_REQUIRE(ts::coordinate(0, 0, mesh) == 0 && ts::coordinate(23, 0, mesh) == 1 &&
                 ts::coordinate(23, 1, mesh) == 2 && ts::coordinate(23, 2, mesh) == 3);
  STATIC_REQUIRE(ts::coordinate(13, 0, mesh) == 1 && ts::coordinate(13, 1, mesh) == 0 &&
                 ts::coordinate(13, 2, mesh) == 1);
}

constexpr bool every_shard_is_found_again() {
  for (int set = 0; set < 8; ++set) {
    const auto varying = static_cast<ts::axis_set>(set);
    const std::int64_t shards = ts::devices_in(varying, mesh);
    for (std::int64_t s = 0; s < shards; ++s)
      if (ts::shard_of_device(ts::device_of_shard(s, varying, mesh), varying, mesh) != s) return false;
    for (std::int64_t d = 0; d < mesh.devices(); ++d) {
      const std::int64_t first = ts::device_of_shard(ts::shard_of_device(d, varying, mesh), varying, mesh);
      if (first > d) return false;
      for (int axis = 0; axis < mesh.rank; ++axis)
        if ((varying & ts::bit_of(axis)) && ts::coordinate(first, axis, mesh) != ts::coordinate(d, axis, mesh))
          return false;
    }
  }
  return true;
}

TEST_CASE("A block's number leads to the first device that holds it, and back") {
  static_assert(every_shard_is_found_again());
  CHECK(every_shard_is_found_again());
}

constexpr bool walking_along_axes_lands_at_the_place() {
  const ts::axis_list lists[] = {ts::axis_append(0, 1), ts::axis_append(ts::axis_append(0, 2), 0),
                                 ts::axis_append(ts::axis_append(0, 0), 1)};
  for (ts::axis_list list : lists)
    for (std::int64_t d = 0; d < mesh.devices(); ++d)
      for (std::int64_t i = 0; i < ts::devices_along(list, mesh); ++i) {
        const std::int64_t there = ts::device_at(d, list, i, mesh);
        if (ts::block_index(there, list, mesh) != i) return false;
        for (int axis = 0; axis < mesh.rank; ++axis)
          if (!(ts::set_of(list) & ts::bit_of(axis)) &&
              ts::coordinate(there, axis, mesh) != ts::coordinate(d, axis, mesh))
            return false;
      }
  return true;
}

TEST_CASE("Going to a place along some axes changes no other coordinate") {
  static_assert(walking_along_axes_lands_at_the_place());
  CHECK(walking_along_axes_lands_at_the_place());
}

TEST_CASE("The major axis of a list counts slowest") {
  constexpr ts::axis_list ca = ts::axis_append(ts::axis_append(0, 2), 0);
  STATIC_REQUIRE(ts::block_index(0, ca, mesh) == 0 && ts::block_index(1, ca, mesh) == 2 &&
                 ts::block_index(12, ca, mesh) == 1);
}
