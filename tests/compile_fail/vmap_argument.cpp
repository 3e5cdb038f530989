// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: a mapped argument is no array or tuple of arrays; write none for it in in_axes<...>
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto scaled = [](auto x, auto by) { return x * by; };
using result = decltype(ts::vmap<ts::in_axes<0, CURE((0), (none))>>(scaled)(floats<ts::shape<4, 8>>, 2.0F));
static_assert(ts::ArrayLike<result>);
