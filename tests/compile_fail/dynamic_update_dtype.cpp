// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dynamic_update_slice: array and update have different dtypes; convert one with astype<...>
// note: dynamic_update_slice_in_dim of float32[32,64] and int32[8,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::dynamic_update_slice_in_dim<0>(
    floats<ts::shape<32, 64>>, array<CURE((ts::i32), (ts::f32)), ts::shape<8, 64>>, array<ts::i32, ts::shape<>>));
static_assert(ts::ArrayLike<result>);
