// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: a window is larger than what it slides over; pad with same or take a smaller one
// note: max_pool of float32[8,12,12,3], dimension 1
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::max_pool<ts::shape<CURE((13), (12)), 2>>(floats<ts::shape<8, 12, 12, 3>>));
static_assert(ts::ArrayLike<result>);
