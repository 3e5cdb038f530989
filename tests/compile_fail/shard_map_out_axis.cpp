// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: out_specs names an axis that is not Manual in the body; leave it out
// note: result 1 is float32[4,4@model]{V:data}, axis model
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return block; };
using result = decltype(ts::shard_map<ts::axis_names<"data">, ts::out_specs<P<"data", CURE(("model"), (none))>>>(
    body_of)(floats<ts::shape<8, 4>, P<"data", "model">>));
static_assert(ts::ArrayLike<result>);
