// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: the region uses an array that is sharded outside; pass it as an argument
// note: multiply of float32[8,4] and float32[8@data,4], axis data of size 2
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<8, 4>, P<"data">>;
inline constexpr auto region = [](auto x, auto y) { return x * CURE((w), (y)); };
using result = decltype(ts::auto_axes(region, ts::out_sharding<P<>>)(floats<ts::shape<8, 4>, P<"data">>, w));
static_assert(ts::ArrayLike<result>);
