// SPDX-License-Identifier: Apache-2.0
// expect: tessera: while_loop: the condition is no bool scalar; compare something first
// note: float32[4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto small = [](auto x) { return CURE((x), (ts::max(x) < 10.0)); };
inline constexpr auto twice = [](auto x) { return x + x; };
using result = decltype(ts::while_loop(small, twice, floats<ts::shape<4>>));
static_assert(ts::ArrayLike<result>);
