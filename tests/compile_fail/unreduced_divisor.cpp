// SPDX-License-Identifier: Apache-2.0
// expect: tessera: divide: the divisor is unreduced; reduce it first with reshard<P<...>>(x)
// note: divide of float32[32] and float32[32]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& total = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
inline constexpr auto& x = floats<ts::shape<32>>;
using result = decltype(x / CURE((total), (ts::reshard<P<>>(total))));
static_assert(ts::ArrayLike<result>);
