// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the extent to split is not divisible by the devices along the axes; pad it or choose
//         another dimension
// note: psum_scatter of float32[6]{V:model}, dimension 0, axis model of size 4
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::psum_scatter<"model">(varying<ts::shape<CURE((6), (8))>, model>, ts::tiled));
static_assert(ts::ArrayLike<result>);
