// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/control.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/reshard.hpp>

#include "ops/support.hpp"

inline constexpr auto add_up = [](auto carry, auto x) { return std::pair(carry + x, carry * 2.0); };
inline constexpr auto twice = [](auto carry, auto x) {
  return std::pair(std::pair(carry.first + x, carry.second + 1), none);
};
inline constexpr auto double_up = [](auto x) { return x + x; };
inline constexpr auto below_ten = [](auto x) { return ts::max(x) < 10.0; };
inline constexpr auto add_trip = [](auto i, auto x) { return x + ts::sum(i); };

extern const array<ts::f32, shape<5, 4, 8>, P<none, "x">> slices;

TEST_CASE("A scan keeps the type of its carry and stacks its outputs along a new uncut dimension") {
  STATIC_REQUIRE(TYPE(ts::scan(add_up, by_x, slices).first) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::scan(add_up, by_x, slices).second) == "float32[5,4@x,8]");
  STATIC_REQUIRE(TYPE(ts::scan(add_up, by_x, slices, ts::reverse).second) == "float32[5,4@x,8]");
}

TEST_CASE("Carries are trees; numbers in them are scalars of float32, int32 or bool") {
  STATIC_REQUIRE(TYPE(ts::scan(twice, std::pair(by_x, 0), slices).first.first) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::scan(twice, std::pair(by_x, 0), slices).first.second) == "int32[]");
  STATIC_REQUIRE(TYPE(ts::scan(twice, std::pair(by_x, 0.0), slices).first.second) == "float32[]");
}

TEST_CASE("Loops and branches return what their functions return") {
  STATIC_REQUIRE(TYPE(ts::while_loop(below_ten, double_up, by_x)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::fori_loop<0, 4>(add_trip, ints)) == "int32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::cond(ts::max(by_x) > 1.0, double_up, double_up, by_x)) == "float32[4@x,8]");
}
