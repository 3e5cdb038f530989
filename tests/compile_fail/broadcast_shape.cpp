// SPDX-License-Identifier: Apache-2.0
// expect: tessera: broadcast_to: extents of the operand do not fit the new shape; reshape it first
// note: broadcast_to of float32[32] to float32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>>;
using result = decltype(ts::broadcast_to<32, 64>(CURE((x), (ts::reshape<32, 1>(x)))));
static_assert(ts::ArrayLike<result>);
