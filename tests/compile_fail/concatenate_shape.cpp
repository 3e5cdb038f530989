// SPDX-License-Identifier: Apache-2.0
// expect: tessera: concatenate: extents of other dimensions differ; reshape, pad or broadcast_to one operand
// note: concatenate of float32[32,64] and float32[32,63]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::concatenate(floats<ts::shape<32, 64>>, floats<ts::shape<32, CURE((63), (64))>>));
static_assert(ts::ArrayLike<result>);
