// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/units.hpp>

#include <catch2/catch.hpp>

#include <limits>

namespace ts = tessera;
using namespace ts::literals;

TEST_CASE("Sizes are written with their unit and are types of their own") {
  STATIC_REQUIRE(80_GB == 80'000'000'000);
  STATIC_REQUIRE(1_KB == ts::KB);
  STATIC_REQUIRE(12_MB == 12 * ts::MB);
  STATIC_REQUIRE(3_TB == 3 * ts::TB);
  STATIC_REQUIRE(1'024_KiB == ts::MiB);
  STATIC_REQUIRE(64_MiB == 64 * ts::MiB);
  STATIC_REQUIRE(80_GiB == 80 * ts::GiB);
  STATIC_REQUIRE(2_TiB == 2 * ts::TiB);
  STATIC_REQUIRE(0_KiB == 0);
  STATIC_REQUIRE(std::is_same_v<decltype(64_KiB), ts::size_constant<65536>>);
}

template <char... Digits>
constexpr std::int64_t in_bytes = ts::units_detail::scaled<Digits...>(ts::KiB);

TEST_CASE("A size is a whole decimal number that fits into 63 bits") {
  STATIC_REQUIRE(in_bytes<'7'> == 7 * 1024);
  STATIC_REQUIRE(in_bytes<'1', '\'', '0', '0', '0'> == 1000 * 1024);
  STATIC_REQUIRE(in_bytes<'1', '.', '5'> == -1);
  STATIC_REQUIRE(in_bytes<'0', 'x', '1'> == -1);
  STATIC_REQUIRE(in_bytes<'0', '1', '7'> == -1);
  STATIC_REQUIRE(in_bytes<'1', 'e', '3'> == -1);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / ts::TiB;
  STATIC_REQUIRE(most == 8'388'607);
  STATIC_REQUIRE(8'388'607_TiB == most * ts::TiB);
  STATIC_REQUIRE(ts::units_detail::scaled<'8', '3', '8', '8', '6', '0', '8'>(ts::TiB) == -1);
}
