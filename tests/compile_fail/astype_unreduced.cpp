// SPDX-License-Identifier: Apache-2.0
// expect: tessera: astype: the sum of rounded parts is not the rounded sum; reduce the array first with
//         reshard<P<...>>(x)
// note: astype of float32[32]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& z = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
using result = decltype(ts::astype<ts::i32>(CURE((z), (ts::reshard<P<>>(z)))));
static_assert(ts::ArrayLike<result>);
