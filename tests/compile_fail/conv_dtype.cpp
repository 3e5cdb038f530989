// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: array and kernel have different dtypes or are bool; convert one with astype<...>
// note: conv of float32[8,12,12,3] and int32[3,3,3,16]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::conv(floats<ts::shape<8, 12, 12, 3>>, array<CURE((ts::i32), (ts::f32)), ts::shape<3, 3, 3, 16>>));
static_assert(ts::ArrayLike<result>);
