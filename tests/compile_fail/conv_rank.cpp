// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: the array is not batch, one or two spatial dimensions, channels; reshape it
// note: max_pool of float32[12,3]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::max_pool<ts::shape<2>>(floats<ts::shape<CURE((), (8, )) 12, 3>>));
static_assert(ts::ArrayLike<result>);
