// SPDX-License-Identifier: Apache-2.0
// expect: tessera: one_hot: the classes are not integers; convert them with astype<i32>
// note: one_hot of float32[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>, P<"data">>;
using result = decltype(ts::one_hot<10>(CURE((x), (ts::astype<ts::i32>(x)))));
static_assert(ts::ArrayLike<result>);
