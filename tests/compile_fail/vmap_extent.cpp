// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: mapped dimensions differ in extent; slice or reshape one argument
// note: float32[8,4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto product = [](auto x, auto y) { return ts::sum(x) * ts::sum(y); };
using result =
    decltype(ts::vmap<ts::in_axes<0, CURE((0), (1))>>(product)(floats<ts::shape<4, 8>>, floats<ts::shape<8, 4>>));
static_assert(ts::ArrayLike<result>);
