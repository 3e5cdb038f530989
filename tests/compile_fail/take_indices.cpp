// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: the indices are not integers; convert them with astype<i32>
// note: take of float32[100,16] and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::take<0>(floats<ts::shape<100, 16>>, array<CURE((ts::f32), (ts::i32)), ts::shape<32>>));
static_assert(ts::ArrayLike<result>);
