// SPDX-License-Identifier: Apache-2.0
// expect: tessera: softmax: there is no such dimension; count from 0, or from -1 backwards
// note: softmax of float32[32@data,10]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::softmax<CURE((2), (1))>(floats<ts::shape<32, 10>, P<"data">>));
static_assert(ts::ArrayLike<result>);
