// SPDX-License-Identifier: Apache-2.0
// expect: tessera: where: the two cases are not unreduced over the same axes; reshard one of them
// note: where of float32[32]{U:data} and a number and bool[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& keep = array<ts::bool_, ts::shape<32>>;
inline constexpr auto& z = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
using result = decltype(ts::where(keep, CURE((z), (ts::reshard<P<>>(z))), 0.0F));
static_assert(ts::ArrayLike<result>);
