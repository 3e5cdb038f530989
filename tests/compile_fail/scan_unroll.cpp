// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: the trips are no multiple of the unrolling; take a number that divides them
// note: 6 trips by 4
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body = [](auto carry, auto x) { return std::pair(carry + x, none); };
inline constexpr auto& xs = floats<ts::shape<6, 4>>;
using result = decltype(ts::scan(body, floats<ts::shape<4>>, xs, ts::unroll<CURE((4), (3))>).first);
static_assert(ts::ArrayLike<result>);
