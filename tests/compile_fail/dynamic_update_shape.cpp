// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dynamic_update_slice: the update does not fit into the array; give it the same rank and less extent
// note: dynamic_update_slice_in_dim of float32[32,64] and float32[40,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::dynamic_update_slice_in_dim<0>(
    floats<ts::shape<32, 64>>, floats<ts::shape<CURE((40), (8)), 64>>, array<ts::i32, ts::shape<>>));
static_assert(ts::ArrayLike<result>);
