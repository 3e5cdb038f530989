// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduced: one operand is reduced over an axis and another one is not; reshard one of them
// note: add of float32[32]{R:data} and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<32>, P<ts::reduced<"data">>>;
inline constexpr auto& x = floats<ts::shape<32>>;
using result = decltype(w + CURE((x), (ts::reshard<P<ts::reduced<"data">>>(x))));
static_assert(ts::ArrayLike<result>);
