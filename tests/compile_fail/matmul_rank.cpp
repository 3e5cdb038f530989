// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: an operand has fewer than 2 dimensions; reshape it to a matrix
// note: matmul of float32[64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<64>>;
using result = decltype(ts::matmul(CURE((x), (ts::reshape<1, 64>(x))), floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
