// SPDX-License-Identifier: Apache-2.0
// expect: tessera: slice: there are more entries than dimensions; drop the last ones
// note: slice of float32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::slice<CURE((0, 0, 0), (0, 0))>(floats<ts::shape<32, 64>>));
static_assert(ts::ArrayLike<result>);
