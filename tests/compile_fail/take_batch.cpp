// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: dimensions that array and indices share differ in extent; reshape or broadcast_to one
// note: take_along_axis of float32[100,16] and int32[32,4], dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::take_along_axis<1>(floats<ts::shape<100, 16>>, array<ts::i32, ts::shape<CURE((32), (100)), 4>>));
static_assert(ts::ArrayLike<result>);
