// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the operand is bool; convert it with astype<...>
// note: psum of bool[4]{V:data}
#include "bodies.hpp"
#include "cure.hpp"

inline constexpr auto& mask = local<ts::bool_, ts::shape<4>>;
using result = decltype(ts::psum<"data">(CURE((mask), (ts::astype<ts::i32>(mask)))));
static_assert(ts::ArrayLike<result>);
