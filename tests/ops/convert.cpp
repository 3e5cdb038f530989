// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/convert.hpp>

#include "ops/support.hpp"

TEST_CASE("astype changes the dtype and nothing else; 16-bit types have no arithmetic yet") {
  STATIC_REQUIRE(TYPE(ts::astype<ts::f64>(by_xy)) == "float64[4@x,8@y]" &&
                 TYPE(ts::astype<ts::i32>(by_x)) == "int32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::astype<ts::f32>(bools)) == "float32[4@x,8]" &&
                 TYPE(ts::astype<ts::bool_>(ints)) == "bool[4@x,8]");
  STATIC_REQUIRE(fault<ts::ops::convert_rule<ts::bf16>, decltype(by_x)> == message::astype_sixteen_bits);
}
