// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduced: one operand is reduced over an axis that cuts another one; reshard one of them
// note: multiply of float32[32]{R:data} and float32[32@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<32>, P<ts::reduced<"data">>>;
inline constexpr auto& x = floats<ts::shape<32>, P<"data">>;
using result = decltype(CURE((w), (ts::reshard<P<"data">>(w))) * x);
static_assert(ts::ArrayLike<result>);
