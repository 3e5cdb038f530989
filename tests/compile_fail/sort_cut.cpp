// SPDX-License-Identifier: Apache-2.0
// expect: tessera: sort: the dimension is cut; reshard the operand so that it is whole
// note: argsort of float32[32@data,64], dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::argsort<CURE((0), (1))>(floats<ts::shape<32, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
