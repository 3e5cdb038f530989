// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shape: there are more than 8 dimensions; merge some of them
// note: float32[1,2,3,4,5,6,7,8] and more, 9 dimensions
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using long_one = ts::tensor<ts::f32, ts::shape<CURE((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 4, 5, 6, 7, 72))>>;
static_assert(long_one::type.rank > 0);
