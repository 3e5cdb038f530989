// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the operand is varying over some of the axes only; name these alone or pcast it first
// note: psum of float32[4]{V:data}
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::psum<"data", "model">(
    CURE((varying<ts::shape<4>>), (ts::pcast<"model">(varying<ts::shape<4>>, ts::to_varying)))));
static_assert(ts::ArrayLike<result>);
