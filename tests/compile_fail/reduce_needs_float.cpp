// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: the operand is not floating-point; convert it with astype<f32>
// note: norm of int32[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = array<ts::i32, ts::shape<32>, P<"data">>;
using result = decltype(ts::norm(CURE((x), (ts::astype<ts::f32>(x)))));
static_assert(ts::ArrayLike<result>);
