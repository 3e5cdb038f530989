// SPDX-License-Identifier: Apache-2.0
// expect: tessera: cond: the predicate is no bool scalar; compare something first
// note: bool[4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<4>>;
inline constexpr auto same = [](auto v) { return v; };
inline constexpr auto twice = [](auto v) { return v + v; };
using result = decltype(ts::cond(CURE((x > 0), (ts::max(x) > 0)), twice, same, x));
static_assert(ts::ArrayLike<result>);
