// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the result would have more than 8 dimensions; write tiled
// note: all_gather of float32[1,1,1,1,1,1,1,1]{V:data}
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::all_gather<"data">(varying<ts::shape<1, 1, 1, 1, 1, 1, 1, 1>> CURE((), (, ts::tiled))));
static_assert(ts::ArrayLike<result>);
