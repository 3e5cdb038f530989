// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: operands have different dtypes; convert one with astype<...>
// note: add of float32[32@data] and int32[32@data]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(floats<ts::shape<32>, P<"data">> + array<CURE((ts::i32), (ts::f32)), ts::shape<32>, P<"data">>);
static_assert(ts::ArrayLike<result>);
