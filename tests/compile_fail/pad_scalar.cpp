// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pad: the fill value is not a scalar; index one element
// note: pad of float32[32] and float32[2]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::pad<ts::padding{1, 1}>(floats<ts::shape<32>>, floats<ts::shape<CURE((2), ())>>));
static_assert(ts::ArrayLike<result>);
