// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reshard: a pending maximum or minimum can only be reduced, and keeps its kind; reduce it first
// note: reshard of float32[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32>>;
using result = decltype(ts::reshard < P < ts::CURE((unreduced_max), (unreduced)) < "data" >>> (x));
static_assert(ts::ArrayLike<result>);
