// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: an operand has not as many dimensions as letters; write one letter a dimension
// note: einsum<"ab,b->a"> of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::einsum<CURE(("ab,b->a"), ("ab,bc->a"))>(floats<ts::shape<32, 64>, P<"data">>,
                                                                    floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
