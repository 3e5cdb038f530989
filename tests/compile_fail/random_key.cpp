// SPDX-License-Identifier: Apache-2.0
// expect: tessera: random: this is no key; make one with random::make_key(seed)
// note: random::bits of uint32[]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::random::bits<ts::shape<4>>(
    CURE((array<ts::u32, ts::shape<>>), (ts::random::make_key(array<ts::u32, ts::shape<>>)))));
static_assert(ts::ArrayLike<result>);
