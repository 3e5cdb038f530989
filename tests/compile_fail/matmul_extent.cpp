// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: contracting extents differ; transpose or reshape one operand
// note: matmul of float32[32@data,64] and float32[16,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<16, 64>>;
using result = decltype(ts::matmul(floats<ts::shape<32, 64>, P<"data">>, CURE((w), (ts::transpose(w)))));
static_assert(ts::ArrayLike<result>);
