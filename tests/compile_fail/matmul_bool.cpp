// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: operands are bool; convert them with astype<f32>
// note: matmul of bool[32,64] and bool[64,16]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = array<ts::bool_, ts::shape<32, 64>>;
inline constexpr auto& w = array<ts::bool_, ts::shape<64, 16>>;
using result = decltype(ts::matmul(CURE((x, w), (ts::astype<ts::f32>(x), ts::astype<ts::f32>(w)))));
static_assert(ts::ArrayLike<result>);
