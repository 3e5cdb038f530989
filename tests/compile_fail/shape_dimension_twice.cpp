// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shape: a dimension is named twice; name it once
// note: expand_dims of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::expand_dims<0, CURE((-4), (1))>(floats<ts::shape<32, 64>, P<"data">>));
static_assert(ts::ArrayLike<result>);
