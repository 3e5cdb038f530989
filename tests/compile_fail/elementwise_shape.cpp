// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: extents do not broadcast; reshape one operand
// note: multiply of float32[32,64] and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(floats<ts::shape<32, 64>> * floats<ts::shape<CURE((32), (64))>>);
static_assert(ts::ArrayLike<result>);
