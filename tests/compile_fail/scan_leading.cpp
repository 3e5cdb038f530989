// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: the leading dimension of a stacked array is sharded; reshard it
// note: float32[4@data,4]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body = [](auto carry, auto x) { return std::pair(carry + x, none); };
inline constexpr auto& xs = floats<ts::shape<4, 4>, P<"data">>;
using result = decltype(ts::scan(body, floats<ts::shape<4>>, CURE((xs), (ts::reshard<P<>>(xs)))).first);
static_assert(ts::ArrayLike<result>);
