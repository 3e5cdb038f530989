// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: the operand is bool; convert it with astype<...>
// note: subtract of bool[32] and a number
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(array<CURE((ts::bool_), (ts::i32)), ts::shape<32>> - 1);
static_assert(ts::ArrayLike<result>);
