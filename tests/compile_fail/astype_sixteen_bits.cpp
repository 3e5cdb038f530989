// SPDX-License-Identifier: Apache-2.0
// expect: tessera: astype: 16-bit types have no arithmetic yet; use f32
// note: astype of float32[32@data] to bfloat16[32@data]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::astype<CURE((ts::bf16), (ts::f32))>(floats<ts::shape<32>, P<"data">>));
static_assert(ts::ArrayLike<result>);
