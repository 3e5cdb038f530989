// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: an array lies along the axis that cuts the mapped dimension; reshard it without that axis
// note: float32[8@data,4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto product = [](auto x, auto w) { return ts::matmul(x, w); };
using result = decltype(ts::vmap<ts::in_axes<0, none>>(product)(
    floats<ts::shape<4, 8>, P<"data">>, floats<ts::shape<8, 4>, CURE((P<"data">), (P<none, "model">))>));
static_assert(ts::ArrayLike<result>);
