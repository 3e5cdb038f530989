// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: batch extents differ; broadcast_to one operand
// note: matmul of float32[8,32,64] and float32[1,64,16]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<1, 64, 16>>;
using result = decltype(ts::matmul(floats<ts::shape<8, 32, 64>>, CURE((w), (ts::broadcast_to<8, 64, 16>(w)))));
static_assert(ts::ArrayLike<result>);
