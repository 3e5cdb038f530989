// SPDX-License-Identifier: Apache-2.0
// expect: tessera: where: the two cases have different dtypes; convert one with astype<...>
// note: where of float32[32] and int32[32] and bool[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& y = array<ts::i32, ts::shape<32>>;
using result =
    decltype(ts::where(array<ts::bool_, ts::shape<32>>, floats<ts::shape<32>>, CURE((y), (ts::astype<ts::f32>(y)))));
static_assert(ts::ArrayLike<result>);
