// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: an argument does not lie as in_specs says; reshard it first or leave in_specs out
// note: argument 1 is float32[8], in_specs says float32[8@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return block; };
inline constexpr auto& x = floats<ts::shape<8>>;
using result = decltype(ts::shard_map<ts::in_specs<P<"data">>, ts::out_specs<P<"data">>>(body_of)(
    CURE((x), (ts::reshard<P<"data">>(x)))));
static_assert(ts::ArrayLike<result>);
