// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: the body returns another carry than it gets; convert, reshape or reshard it to the type of init
// note: carry float32[4] becomes float32[4@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body = [](auto carry, auto x) {
  return std::pair(CURE((carry + x), (ts::reshard<P<>>(carry + x))), none);
};
using result = decltype(ts::scan(body, floats<ts::shape<4>>, floats<ts::shape<3, 4>, P<none, "data">>).first);
static_assert(ts::ArrayLike<result>);
