// SPDX-License-Identifier: Apache-2.0
// expect: tessera: at: the updates are sharded otherwise than the chosen elements; reshard them or write
//         out_sharding<P<...>>
// note: at.add of float32[100,16@model] and float32[32,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::at(floats<ts::shape<100, 16>, P<none, "model">>,
                               array<ts::i32, ts::shape<32>> CURE((), (, ts::out_sharding<P<none, "model">>)))
                            .add(floats<ts::shape<32, 16>>));
static_assert(ts::ArrayLike<result>);
