// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: no argument is mapped; name a dimension of one in in_axes<...>
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto twice = [](auto x) { return x * 2; };
using result = decltype(ts::vmap<ts::in_axes<CURE((none), (0))>>(twice)(floats<ts::shape<4, 8>>));
static_assert(ts::ArrayLike<result>);
