// SPDX-License-Identifier: Apache-2.0
// expect: tessera: concatenate: operands have different dtypes; convert one with astype<...>
// note: concatenate of float32[32,64] and int32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::concatenate(floats<ts::shape<32, 64>>, array<CURE((ts::i32), (ts::f32)), ts::shape<32, 64>>));
static_assert(ts::ArrayLike<result>);
