// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: an operand has no dimensions; multiply it with * instead
// note: matmul of float32[] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<>>;
inline constexpr auto& w = floats<ts::shape<64, 16>>;
using result = decltype(CURE((ts::matmul(x, w)), (x * w)));
static_assert(ts::ArrayLike<result>);
