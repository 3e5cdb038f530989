// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: a result is no array; return arrays, or a tuple of them
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return CURE((3), (block)); };
using result = decltype(ts::shard_map<ts::out_specs<P<"data">>>(body_of)(floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
