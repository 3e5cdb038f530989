// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: an operand has dimensions in ... that the result has not; write ... there too
// note: einsum<"...ab,bc->ac"> of float32[32@data,8,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::einsum<CURE(("...ab,bc->ac"), ("...ab,bc->...ac"))>(floats<ts::shape<32, 8, 64>, P<"data">>,
                                                                                floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
