// SPDX-License-Identifier: Apache-2.0
// expect: tessera: broadcast_to: the operand is sharded otherwise than out_sharding; reshard it first
// note: broadcast_to of float32[64@model] to float32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& b = floats<ts::shape<64>, P<"model">>;
using result = decltype(ts::broadcast_to<32, 64>(b, ts::out_sharding<CURE((P<"data">), (P<"data", "model">))>));
static_assert(ts::ArrayLike<result>);
