// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: the unreduced axes are of another kind than the reduction; reduce the operand first or
//         write the matching unreduced<...>
// note: max of float32[32]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& z = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
using result = decltype(ts::max(CURE((z), (ts::reshard<P<>>(z)))));
static_assert(ts::ArrayLike<result>);
