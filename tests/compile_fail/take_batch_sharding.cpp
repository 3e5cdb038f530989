// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: array and indices are sharded in ways that do not go together; reshard one of them
// note: take_along_axis of float32[32@data,16] and int32[32@model,4], dimension 0
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::take_along_axis<1>(floats<ts::shape<32, 16>, P<"data">>,
                                               array<ts::i32, ts::shape<32, 4>, P<CURE(("model"), ("data"))>>));
static_assert(ts::ArrayLike<result>);
