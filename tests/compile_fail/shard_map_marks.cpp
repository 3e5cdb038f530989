// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: a result is unreduced or reduced over other axes than out_specs says; write unreduced<...>
//         or reduced<...> there, or psum it first
// note: result 1 is float32[]{U:data}, axis data
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return ts::pcast<"data">(ts::sum(block), ts::to_unreduced); };
using out = ts::out_specs<CURE((P<>), (P<ts::unreduced<"data">>))>;
using result = decltype(ts::shard_map<out>(body_of)(floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
