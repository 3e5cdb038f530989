// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: a dimension is cut by Manual and other axes; put the Manual ones first or reshard it
// note: argument 1 is float32[8@(model,data)], axis data
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return block; };
using result = decltype(ts::shard_map<ts::axis_names<"data">, ts::out_specs<P<"data">>>(body_of)(
    floats<ts::shape<8>, P<ts::axes<CURE(("model", "data"), ("data", "model"))>>>));
static_assert(ts::ArrayLike<result>);
