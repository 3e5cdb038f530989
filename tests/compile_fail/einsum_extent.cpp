// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: a letter stands for two extents; transpose or reshape one operand
// note: einsum<"ab,cb->ac"> of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::einsum<CURE(("ab,cb->ac"), ("ab,bc->ac"))>(floats<ts::shape<32, 64>, P<"data">>,
                                                                       floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
