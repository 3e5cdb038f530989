// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: there is nothing along the indexed dimension; index another one
// note: take of float32[0,16] and int32[32]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::take<CURE((0), (1))>(floats<ts::shape<0, 16>>, array<ts::i32, ts::shape<32>>));
static_assert(ts::ArrayLike<result>);
