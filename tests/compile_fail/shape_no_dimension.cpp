// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shape: there is no such dimension; count from 0, or from -1 backwards
// note: flip of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::flip<CURE((2), (1))>(floats<ts::shape<32, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
