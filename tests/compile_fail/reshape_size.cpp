// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reshape: the number of elements changes; write extents with the same product
// note: reshape of float32[32@data,64] to float32[32,65]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::reshape<32, CURE((65), (64, 1))>(floats<ts::shape<32, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
