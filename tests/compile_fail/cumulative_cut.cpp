// SPDX-License-Identifier: Apache-2.0
// expect: tessera: cumulative: the dimension is cut; reshard the operand so that it is whole
// note: cumprod of float32[32@data,64], dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::cumprod<CURE((0), (1))>(floats<ts::shape<32, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
