// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: neither init nor the stacked arrays are traced; pass at least one array
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body = [](auto carry) { return std::pair(carry + 1.0, none); };
using result = decltype(ts::scan<3>(body, CURE((0.0), (floats<ts::shape<>>))).first);
static_assert(ts::ArrayLike<result>);
