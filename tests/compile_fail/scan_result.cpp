// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: the body returns no pair; return std::pair(carry, output), with none where there is no output
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body = [](auto carry, auto x) { return CURE((carry + x), (std::pair(carry + x, none))); };
using result = decltype(ts::scan(body, floats<ts::shape<4>>, floats<ts::shape<3, 4>>).first);
static_assert(ts::ArrayLike<result>);
