// SPDX-License-Identifier: Apache-2.0
// expect: tessera: roll: the shift is no int32 scalar; convert it with astype<i32> or index it
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& shift = array<ts::u32, ts::shape<>>;
using result = decltype(ts::roll<0>(floats<ts::shape<8, 4>>, CURE((shift), (ts::astype<ts::i32>(shift)))));
static_assert(ts::ArrayLike<result>);
