// SPDX-License-Identifier: Apache-2.0
// expect: tessera: squeeze: the extent of the dimension is not 1; take a part of it with slice<...>
// note: squeeze of float32[32@data,1,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::squeeze<CURE((0), (1))>(floats<ts::shape<32, 1, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
