// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: a letter stands twice in one operand or in the result; use another letter
// note: einsum<"aa,ac->c"> of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::einsum<CURE(("aa,ac->c"), ("ab,bc->c"))>(floats<ts::shape<32, 64>, P<"data">>,
                                                                     floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
