// SPDX-License-Identifier: Apache-2.0
// expect: tessera: slice: an index is outside its dimension; count from 0, or from -1 backwards
// note: slice of float32[32,64], dimension 1
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::slice<0, CURE((64), (63))>(floats<ts::shape<32, 64>>));
static_assert(ts::ArrayLike<result>);
