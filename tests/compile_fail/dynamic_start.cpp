// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dynamic_slice: a start is no integer scalar; convert it with astype<i32> or index it
// note: dynamic_slice_in_dim of float32[32,64] and float32[]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::dynamic_slice_in_dim<8>(floats<ts::shape<32, 64>>, array<CURE((ts::f32), (ts::i32)), ts::shape<>>));
static_assert(ts::ArrayLike<result>);
