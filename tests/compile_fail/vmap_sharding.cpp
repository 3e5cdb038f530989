// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: mapped dimensions are sharded differently; reshard one argument
// note: float32[4,2]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto product = [](auto x, auto y) { return x * y; };
using result =
    decltype(ts::vmap(product)(floats<ts::shape<4, 2>, P<"data">>, floats<ts::shape<4, 2>, CURE((P<>), (P<"data">))>));
static_assert(ts::ArrayLike<result>);
