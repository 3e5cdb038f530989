// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: an argument of the region is no array, number or tuple of them; pass arrays
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto region = [](auto x, auto) { return 2 * x; };
using result =
    decltype(ts::auto_axes(region, ts::out_sharding<P<>>)(floats<ts::shape<8, 4>, P<"data">>, CURE(("two"), (2))));
static_assert(ts::ArrayLike<result>);
