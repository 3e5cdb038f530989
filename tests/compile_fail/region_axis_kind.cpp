// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: the axis is not of the kind that the region changes; auto_axes takes Explicit axes,
//         explicit_axes Auto ones
// note: axis data
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto region = [](auto x) { return 2 * x; };
using result =
    decltype(ts::CURE((explicit_axes<"data">(region, ts::in_sharding<P<>>)),
                      (auto_axes<"data">(region, ts::out_sharding<P<>>)))(floats<ts::shape<8, 4>, P<"data">>));
static_assert(ts::ArrayLike<result>);
