// SPDX-License-Identifier: Apache-2.0
// expect: tessera: sort: there are not as many elements; name a number up to the extent
// note: top_k of float32[32@data,8]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::top_k<CURE((9), (8))>(floats<ts::shape<32, 8>, P<"data">>).first);
static_assert(ts::ArrayLike<result>);
