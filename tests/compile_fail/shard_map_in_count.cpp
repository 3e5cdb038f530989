// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: in_specs and arguments differ in number; write one spec an argument
// note: 1 specs, 2 arguments
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block, auto other) { return block * other; };
using result = decltype(ts::shard_map<ts::in_specs<P<"data"> CURE((), (, P<>))>, ts::out_specs<P<"data">>>(body_of)(
    floats<ts::shape<8>, P<"data">>, floats<ts::shape<>>));
static_assert(ts::ArrayLike<result>);
