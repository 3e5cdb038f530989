// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: out_specs and results differ in number; write one spec a result
// note: 2 specs, 1 results
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return block; };
using result =
    decltype(ts::shard_map<ts::out_specs<P<"data"> CURE((, P<>), ())>>(body_of)(floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
