// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/text.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace ts = tessera;

template <ts::text Name>
struct named {};

constexpr ts::text_buffer number(std::int64_t value) { return ts::text_buffer{} << value; }

TEST_CASE("Equal names are one type, and a text has the length of its literal") {
  STATIC_REQUIRE(std::is_same_v<named<"data">, named<"data">>);
  STATIC_REQUIRE(!std::is_same_v<named<"data">, named<"dat">>);
  STATIC_REQUIRE(ts::text("model").length == 5 && ts::text("model").view() == "model");
  STATIC_REQUIRE(ts::text("").view().empty());
}

TEST_CASE("Numbers are written in full, the smallest one too") {
  STATIC_REQUIRE(number(0).view() == "0" && number(-7).view() == "-7" && number(1024).view() == "1024");
  STATIC_REQUIRE(number(std::numeric_limits<std::int64_t>::max()).view() == "9223372036854775807");
  STATIC_REQUIRE(number(std::numeric_limits<std::int64_t>::min()).view() == "-9223372036854775808");
}

constexpr bool cut_off() {
  ts::text_buffer out;
  for (int i = 0; i < 1000; ++i) out << 'x';
  return out.size == ts::text_buffer::capacity - 1;
}

TEST_CASE("A buffer cuts off what does not fit; exact_text has just the length it needs") {
  static_assert(cut_off());
  constexpr auto text = ts::exact_text<[] { return ts::text_buffer{} << "axis " << 3; }>();
  static_assert(text.view() == "axis 3" && text.length == 6);
  CHECK(cut_off());
}
