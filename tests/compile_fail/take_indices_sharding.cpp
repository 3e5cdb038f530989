// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: the indices are sharded, and the gradient would be summed over devices; write
//         out_sharding<P<...>> or reshard the indices
// note: take of float32[100,16] and int32[32@data], dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::take<0>(
    floats<ts::shape<100, 16>>, array<ts::i32, ts::shape<32>, P<"data">> CURE((), (, ts::out_sharding<P<"data">>))));
static_assert(ts::ArrayLike<result>);
