// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pad: interior padding is negative; take a part with slice<...>
// note: pad of float32[32] and a number, dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::pad<ts::padding{0, 0, CURE((-1), (1))}>(floats<ts::shape<32>>, 0));
static_assert(ts::ArrayLike<result>);
