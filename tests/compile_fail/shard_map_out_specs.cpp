// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: nothing says how results lie; write shard_map<out_specs<P<...>>>(f)
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return block; };
using result = decltype(ts::shard_map<CURE((ts::in_specs<P<"data">>), (ts::out_specs<P<"data">>))>(body_of)(
    floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
