// SPDX-License-Identifier: Apache-2.0
// expect: tessera: random: 16-bit numbers are not drawn; draw float32 and write astype<...>(...)
// note: random::uniform of uint32[2]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::random::uniform<ts::shape<32>, CURE((ts::bf16), (ts::f32))>(array<ts::u32, ts::shape<2>>));
static_assert(ts::ArrayLike<result>);
