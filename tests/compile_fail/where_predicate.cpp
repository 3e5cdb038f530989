// SPDX-License-Identifier: Apache-2.0
// expect: tessera: where: the predicate is not bool; compare it with something first
// note: where of float32[32] and a number and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>>;
using result = decltype(ts::where(CURE((x), (x > 0)), x, 0));
static_assert(ts::ArrayLike<result>);
