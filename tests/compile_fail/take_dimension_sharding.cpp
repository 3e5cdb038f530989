// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: the indexed dimension is sharded; write out_sharding<P<...>> or reshard the array
// note: take of float32[100@data,16] and int32[32], dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::take<0>(floats<ts::shape<100, 16>, P<"data">>,
                                    array<ts::i32, ts::shape<32>> CURE((), (, ts::out_sharding<P<>>))));
static_assert(ts::ArrayLike<result>);
