// SPDX-License-Identifier: Apache-2.0
// expect: tessera: softmax: the operand is not floating-point; convert it with astype<f32>
// note: log_softmax of int32[32@data,10]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = array<ts::i32, ts::shape<32, 10>, P<"data">>;
using result = decltype(ts::log_softmax(CURE((x), (ts::astype<ts::f32>(x)))));
static_assert(ts::ArrayLike<result>);
