// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: out_axes and results differ in number; write one entry a result, or one for all
// note: 2 entries, 1 results
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto twice = [](auto x) { return x * 2; };
using result = decltype(ts::vmap<ts::out_axes<0 CURE((, 0), ())>>(twice)(floats<ts::shape<4, 8>>));
static_assert(ts::ArrayLike<result>);
