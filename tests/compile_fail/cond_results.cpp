// SPDX-License-Identifier: Apache-2.0
// expect: tessera: cond: the two functions return different types; convert, reshape or reshard one
// note: result float32[] becomes float32[4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<4>>;
inline constexpr auto total = [](auto v) { return CURE((ts::sum(v)), (v * ts::sum(v))); };
inline constexpr auto twice = [](auto v) { return v + v; };
using result = decltype(ts::cond(ts::max(x) > 0, total, twice, x));
static_assert(ts::ArrayLike<result>);
