// SPDX-License-Identifier: Apache-2.0
// expect: tessera: unreduced: the operation has no rule for an operand that is unreduced; reduce it first with
//         reshard<P<...>>(x)
// note: sin of float32[32]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
using result = decltype(ts::sin(CURE((x), (ts::reshard<P<>>(x)))));
static_assert(ts::ArrayLike<result>);
