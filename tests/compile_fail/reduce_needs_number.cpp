// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: the operand is bool; convert it with astype<...>
// note: sum of bool[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = array<ts::bool_, ts::shape<32>, P<"data">>;
using result = decltype(ts::sum(CURE((x), (ts::astype<ts::i32>(x)))));
static_assert(ts::ArrayLike<result>);
