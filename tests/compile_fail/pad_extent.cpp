// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pad: more is cropped than there is; crop less
// note: pad of float32[32] and a number, dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::pad<ts::padding{-30, CURE((-3), (-2))}>(floats<ts::shape<32>>, 0));
static_assert(ts::ArrayLike<result>);
