// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: stacked arrays differ in their leading extent, or have none; reshape them
// note: float32[3,4], float32[2,4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body = [](auto carry, auto x) { return std::pair(carry + x.first + x.second, none); };
inline constexpr std::pair xs(floats<ts::shape<3, 4>>, floats<ts::shape<CURE((2), (3)), 4>>);
using result = decltype(ts::scan(body, floats<ts::shape<4>>, xs).first);
static_assert(ts::ArrayLike<result>);
