// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pool: the array is bool, or a mean is asked of integers; convert it with astype<f32>
// note: avg_pool of int32[8,12,12,3]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::avg_pool<ts::shape<2, 2>>(array<CURE((ts::i32), (ts::f32)), ts::shape<8, 12, 12, 3>>));
static_assert(ts::ArrayLike<result>);
