// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: there is no such dimension; count from 0, or from -1 backwards
// note: float32[4,8]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto twice = [](auto x) { return x * 2; };
using result = decltype(ts::vmap<ts::in_axes<CURE((2), (1))>>(twice)(floats<ts::shape<4, 8>>));
static_assert(ts::ArrayLike<result>);
