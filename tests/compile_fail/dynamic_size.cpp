// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dynamic_slice: a size is not within its dimension; take less
// note: dynamic_slice_in_dim of float32[32,64] and int32[]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::dynamic_slice_in_dim<CURE((33), (32))>(floats<ts::shape<32, 64>>, array<ts::i32, ts::shape<>>));
static_assert(ts::ArrayLike<result>);
