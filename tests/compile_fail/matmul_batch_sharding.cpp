// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: batch dimensions are sharded differently; reshard one operand
// note: matmul of float32[8@data,32,64] and float32[8,64,16]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<8, 64, 16>>;
using result = decltype(ts::matmul(floats<ts::shape<8, 32, 64>, P<"data">>, CURE((w), (ts::reshard<P<"data">>(w)))));
static_assert(ts::ArrayLike<result>);
