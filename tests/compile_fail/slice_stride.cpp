// SPDX-License-Identifier: Apache-2.0
// expect: tessera: slice: a stride is 0; write 1, or -1 to go backwards
// note: slice of float32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::slice<ts::range{0, 32, CURE((0), (1))}>(floats<ts::shape<32, 64>>));
static_assert(ts::ArrayLike<result>);
