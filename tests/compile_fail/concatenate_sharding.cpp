// SPDX-License-Identifier: Apache-2.0
// expect: tessera: concatenate: operands are sharded differently; reshard one operand
// note: concatenate of float32[32@data,64] and float32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::concatenate<1>(floats<ts::shape<32, 64>, P<"data">>,
                                           floats<ts::shape<32, 64>, P<CURE((), ("data"))>>));
static_assert(ts::ArrayLike<result>);
