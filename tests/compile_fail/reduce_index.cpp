// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: there are more elements than an int32 counts; name one dimension
// note: argmax of float32[65536,65536]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::argmax<CURE((), (0))>(floats<ts::shape<65536, 65536>>));
static_assert(ts::ArrayLike<result>);
