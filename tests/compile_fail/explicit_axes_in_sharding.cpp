// SPDX-License-Identifier: Apache-2.0
// expect: tessera: explicit_axes: nothing says how arguments lie; write explicit_axes<...>(f, in_sharding<P<...>>)
#include "arrays.hpp"
#include "cure.hpp"

using automatic = ts::mesh<ts::auto_axis<"x", 2>>;
inline constexpr auto& a = array<ts::f32, ts::shape<8>, P<>, automatic>;
inline constexpr auto region = [](auto x) { return 2 * x; };
using result = decltype(ts::explicit_axes(region CURE((), (, ts::in_sharding<P<"x">>)))(a));
static_assert(ts::ArrayLike<result>);
