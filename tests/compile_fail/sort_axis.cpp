// SPDX-License-Identifier: Apache-2.0
// expect: tessera: sort: there is no such dimension; count from 0, or from -1 backwards
// note: argsort of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::argsort<CURE((2), (1))>(floats<ts::shape<32, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
