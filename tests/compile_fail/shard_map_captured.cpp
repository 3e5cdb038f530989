// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: the body uses an array that is sharded outside; pass it as an argument
// note: multiply of float32[4]{V:data} and float32[8@data], axis data of size 2
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& w = floats<ts::shape<8>, P<"data">>;
inline constexpr auto body_of = [](auto block, auto weight) { return block * CURE((w), (weight)); };
using result = decltype(ts::shard_map<ts::out_specs<P<"data">>>(body_of)(floats<ts::shape<8>, P<"data">>, w));
static_assert(ts::ArrayLike<result>);
