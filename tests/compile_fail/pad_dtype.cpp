// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pad: the fill value has another dtype; convert it with astype<...>
// note: pad of float32[32] and int32[]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::pad<ts::padding{1, 1}>(floats<ts::shape<32>>, array<CURE((ts::i32), (ts::f32)), ts::shape<>>));
static_assert(ts::ArrayLike<result>);
