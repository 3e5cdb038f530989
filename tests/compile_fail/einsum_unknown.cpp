// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: the result has a letter that no operand has; drop it and broadcast_to
// note: einsum<"ab,bc->acd"> of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::einsum<CURE(("ab,bc->acd"), ("ab,bc->ac"))>(floats<ts::shape<32, 64>, P<"data">>,
                                                                        floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
