// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: the operand is no integer; convert it with astype<i32>
// note: left_shift of float32[32@data] and a number
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>, P<"data">>;
using result = decltype(CURE((x), (ts::astype<ts::i32>(x))) << 2);
static_assert(ts::ArrayLike<result>);
