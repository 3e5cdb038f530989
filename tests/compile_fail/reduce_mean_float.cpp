// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: the mean of integers is not an integer; convert with astype<f32> first
// note: mean of int32[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = array<ts::i32, ts::shape<32>, P<"data">>;
using result = decltype(ts::mean(CURE((x), (ts::astype<ts::f32>(x)))));
static_assert(ts::ArrayLike<result>);
