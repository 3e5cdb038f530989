// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the operand does not come from inside a shard_map over this axis; call it in the body,
//         on what the body was given
// note: psum of float32[4], axis data of size 2
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::psum<"data">(CURE((floats<ts::shape<4>>), (varying<ts::shape<4>>))));
static_assert(ts::ArrayLike<result>);
