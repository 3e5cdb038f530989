// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: the mesh has no such axis; name one of its axes
// note: axis rows
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto region = [](auto x) { return 2 * x; };
using result = decltype(ts::auto_axes<CURE(("rows"), ("data"))>(
    region, ts::out_sharding<P<>>)(floats<ts::shape<8, 4>, P<"data">>));
static_assert(ts::ArrayLike<result>);
