// SPDX-License-Identifier: Apache-2.0
// expect: tessera: where: operands of equal shape are sharded differently; reshard one operand
// note: where of float32[32@data] and float32[32] and bool[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>, P<"data">>;
inline constexpr auto& y = floats<ts::shape<32>>;
using result = decltype(ts::where(x > 0, x, CURE((y), (ts::reshard<P<"data">>(y)))));
static_assert(ts::ArrayLike<result>);
