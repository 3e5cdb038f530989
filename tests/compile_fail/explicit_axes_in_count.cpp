// SPDX-License-Identifier: Apache-2.0
// expect: tessera: explicit_axes: specs and arguments differ in number; write one in_sharding<...> an argument
// note: 1 specs, 2 arguments
#include "arrays.hpp"
#include "cure.hpp"

using automatic = ts::mesh<ts::auto_axis<"x", 2>>;
inline constexpr auto& a = array<ts::f32, ts::shape<8>, P<>, automatic>;
inline constexpr auto region = [](auto x, auto y) { return x * y; };
using result = decltype(ts::explicit_axes(region, ts::in_sharding<P<"x">> CURE((), (, ts::in_sharding<P<"x">>)))(a, a));
static_assert(ts::ArrayLike<result>);
