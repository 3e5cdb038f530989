// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: an argument is no array, number or tuple of them; pass arrays
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block, auto) { return block; };
using result =
    decltype(ts::shard_map<ts::out_specs<P<"data">>>(body_of)(floats<ts::shape<8>, P<"data">>, CURE(("two"), (2))));
static_assert(ts::ArrayLike<result>);
