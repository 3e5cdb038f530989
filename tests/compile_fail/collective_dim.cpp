// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: there is no such dimension; count from 0, or from -1 backwards
// note: all_gather of float32[4]{V:data}
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::all_gather<"data">(varying<ts::shape<4>>, ts::along<CURE((1), (0))>, ts::tiled));
static_assert(ts::ArrayLike<result>);
