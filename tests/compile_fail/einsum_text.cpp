// SPDX-License-Identifier: Apache-2.0
// expect: tessera: einsum: subscripts are letters, commas and one ->; write them as in "ab,bc->ac"
// note: einsum<"ab*bc"> of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::einsum<CURE(("ab*bc"), ("ab,bc"))>(floats<ts::shape<32, 64>, P<"data">>, floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
