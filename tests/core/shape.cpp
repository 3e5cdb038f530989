// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/shape.hpp>

#include <catch2/catch.hpp>

#include <type_traits>

namespace ts = tessera;

TEST_CASE("A shape is its extents; a scalar has none and one element") {
  using matrix = ts::shape<32, 64>;
  STATIC_REQUIRE(matrix::rank == 2 && matrix::size == 2048 && matrix::extents[0] == 32 && matrix::extents[1] == 64);
  STATIC_REQUIRE(ts::shape<>::rank == 0 && ts::shape<>::size == 1);
  STATIC_REQUIRE(ts::shape<3, 0, 5>::size == 0);
  STATIC_REQUIRE(ts::shape<std::int64_t{1} << 40, 8>::size == std::int64_t{1} << 43);
  STATIC_REQUIRE(std::is_empty_v<matrix>);
}
