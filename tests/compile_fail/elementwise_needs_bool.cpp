// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: the operand is not bool; compare it with something first
// note: logical_and of float32[32@data] and bool[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>, P<"data">>;
using result = decltype((CURE((x), (x > 0))) && array<ts::bool_, ts::shape<32>, P<"data">>);
static_assert(ts::ArrayLike<result>);
