// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: operands and subscripts are not as many; write one group of letters each
// note: einsum<"ab->a"> of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::einsum<CURE(("ab->a"), ("ab,bc->a"))>(floats<ts::shape<32, 64>, P<"data">>,
                                                                  floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
