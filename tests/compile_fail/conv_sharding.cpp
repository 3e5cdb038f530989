// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: the kernel or the channels are sharded; write out_sharding<P<...>> or reshard them
// note: conv of float32[8,12,12,3] and float32[3,3,3,16@model]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::conv(floats<ts::shape<8, 12, 12, 3>>,
                                 floats<ts::shape<3, 3, 3, 16>, P<none, none, none, "model">> CURE(
                                     (), (, ts::out_sharding<P<none, none, none, "model">>))));
static_assert(ts::ArrayLike<result>);
