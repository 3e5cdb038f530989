// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: a result is no array; return arrays, or a tuple of them
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto count = [](auto x) { return CURE((2), (ts::sum(x))); };
using result = decltype(ts::vmap(count)(floats<ts::shape<4, 8>>));
static_assert(ts::ArrayLike<result>);
