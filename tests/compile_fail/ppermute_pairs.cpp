// SPDX-License-Identifier: Apache-2.0
// expect: tessera: ppermute: a device sends or receives twice, or does not exist; name each at most once, counted
//         from 0
// note: ppermute of float32[4]{V:data}, axis data of size 2
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::ppermute<"data", ts::send<0, 1>, ts::send<CURE((0, 0), (1, 0))>>(varying<ts::shape<4>>));
static_assert(ts::ArrayLike<result>);
