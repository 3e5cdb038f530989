// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: operands have different dtypes; convert one with astype<...>
// note: matmul of float32[32,64] and float64[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::matmul(floats<ts::shape<32, 64>>, array<CURE((ts::f64), (ts::f32)), ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
