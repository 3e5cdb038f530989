// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: a mean or maximum over no elements has no value; use sum or a non-empty shape
// note: max of float32[0,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::max<0>(floats<ts::shape<CURE((0), (1)), 64>>));
static_assert(ts::ArrayLike<result>);
