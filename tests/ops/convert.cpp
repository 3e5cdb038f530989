// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/convert.hpp>

#include "ops/support.hpp"

TEST_CASE("astype changes the dtype and nothing else") {
  STATIC_REQUIRE(TYPE(ts::astype<ts::f64>(by_xy)) == "float64[4@x,8@y]" &&
                 TYPE(ts::astype<ts::i32>(by_x)) == "int32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::astype<ts::f32>(bools)) == "float32[4@x,8]" &&
                 TYPE(ts::astype<ts::bool_>(ints)) == "bool[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::astype<ts::bf16>(by_xy)) == "bfloat16[4@x,8@y]");
}
