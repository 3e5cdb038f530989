// SPDX-License-Identifier: Apache-2.0
// expect: tessera: random: a key draws no more than 2^32 elements; draw parts from keys of their own
// note: random::bits of uint32[2]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::random::bits<ts::shape<65536, CURE((65537), (65536))>>(array<ts::u32, ts::shape<2>>));
static_assert(ts::ArrayLike<result>);
