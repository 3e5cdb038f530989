// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduced: the operation has no rule for an operand that is reduced; write reshard<P<...>>(x)
//         without it
// note: one_hot of int32[32]{R:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& labels = array<ts::i32, ts::shape<32>, P<ts::reduced<"data">>>;
using result = decltype(ts::one_hot<10>(CURE((labels), (ts::reshard<P<>>(labels)))));
static_assert(ts::ArrayLike<result>);
