// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: a dimension is named twice; name it once
// note: sum of float32[32,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::sum<1, CURE((-1), (0))>(floats<ts::shape<32, 64>>));
static_assert(ts::ArrayLike<result>);
