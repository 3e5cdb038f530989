// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: ddof leaves nothing to divide by; write less than the number of elements
// note: var of float32[32@data,2]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::var<1>(floats<ts::shape<32, 2>, P<"data">>, ts::ddof<CURE((2), (1))>));
static_assert(ts::ArrayLike<result>);
