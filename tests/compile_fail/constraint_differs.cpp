// SPDX-License-Identifier: Apache-2.0
// expect: tessera: with_sharding_constraint: the array does not lie so; reshard it, or drop the constraint
// note: with_sharding_constraint of float32[8@data,4] to float32[8@model,4]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::with_sharding_constraint<P<CURE(("model"), ("data"))>>(floats<ts::shape<8, 4>, P<"data">>));
static_assert(ts::ArrayLike<result>);
