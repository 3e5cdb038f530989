// SPDX-License-Identifier: Apache-2.0
// expect: tessera: auto_axes: no argument says which mesh the region runs over; pass an array that lives on one
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/nn/variable.hpp>

inline constexpr auto region = [](auto x) { return 2 * x; };
extern const ts::nn::variable<ts::nn::param, ts::f32, ts::shape<8>, P<"data">> weight;
using result =
    decltype(ts::auto_axes(region, ts::out_sharding<P<>>)(CURE((weight), (floats<ts::shape<8>, P<"data">>))));
static_assert(ts::ArrayLike<result>);
