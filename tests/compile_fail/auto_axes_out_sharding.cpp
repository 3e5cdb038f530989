// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: nothing says how results lie; write auto_axes<...>(f, out_sharding<P<...>>)
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto region = [](auto x) { return 2 * x; };
using result =
    decltype(ts::auto_axes(region CURE((), (, ts::out_sharding<P<"data">>)))(floats<ts::shape<8, 4>, P<"data">>));
static_assert(ts::ArrayLike<result>);
