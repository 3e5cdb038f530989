// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pad: there are more entries than dimensions; drop the last ones
// note: pad of float32[32] and a number
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::pad<ts::padding{1, 1} CURE((, ts::padding{1, 1}), ())>(floats<ts::shape<32>>, 0));
static_assert(ts::ArrayLike<result>);
