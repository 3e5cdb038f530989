// SPDX-License-Identifier: Apache-2.0
// expect: tessera: transpose: this is not a permutation of the dimensions; name each once
// note: transpose of float32[8,32,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::transpose<CURE((0, 2), (1, 0, 2))>(floats<ts::shape<8, 32, 64>>));
static_assert(ts::ArrayLike<result>);
