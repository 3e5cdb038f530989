// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the mean of integers is not an integer; convert with astype<f32> first
// note: pmean of int32[4]{V:data}
#include "bodies.hpp"
#include "cure.hpp"

inline constexpr auto& counts = local<ts::i32, ts::shape<4>>;
using result = decltype(ts::pmean<"data">(CURE((counts), (ts::astype<ts::f32>(counts)))));
static_assert(ts::ArrayLike<result>);
