// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dynamic_update_slice: array and update are sharded differently; reshard one of them or write
//         out_sharding<P<...>>
// note: dynamic_update_slice_in_dim of float32[32,64@model] and float32[8,64]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::dynamic_update_slice_in_dim<0>(floats<ts::shape<32, 64>, P<none, "model">>,
                                                           floats<ts::shape<8, 64>, P<none CURE((), (, "model"))>>,
                                                           array<ts::i32, ts::shape<>>));
static_assert(ts::ArrayLike<result>);
