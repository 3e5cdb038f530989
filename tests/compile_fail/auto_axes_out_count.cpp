// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: specs and results differ in number; write one out_sharding<...> a result, or one for
//         all
// note: 2 specs, 3 results
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto region = [](auto x) { return std::tuple(x, 2 * x, 3 * x); };
using result =
    decltype(ts::auto_axes(region, ts::out_sharding<P<>>, ts::out_sharding<P<>> CURE((), (, ts::out_sharding<P<>>)))(
        floats<ts::shape<8, 4>, P<"data">>));
static_assert(ts::ops::holds_poison<CURE((ts::poison), (std::tuple<result, ts::poison>))>());
