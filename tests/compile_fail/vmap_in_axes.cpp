// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: in_axes and arguments differ in number; write one entry an argument, or one for all
// note: 2 entries, 1 arguments
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto twice = [](auto x) { return x * 2; };
using result = decltype(ts::vmap<ts::in_axes<0 CURE((, 0), ())>>(twice)(floats<ts::shape<4, 8>>));
static_assert(ts::ArrayLike<result>);
