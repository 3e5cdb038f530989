// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: a result of the region is no array; return arrays, or a tuple of them
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto region = [](auto x) { return CURE((3), (2 * x)); };
using result = decltype(ts::auto_axes(region, ts::out_sharding<P<>>)(floats<ts::shape<8, 4>, P<"data">>));
static_assert(ts::ArrayLike<result>);
