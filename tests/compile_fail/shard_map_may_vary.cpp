// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: a result may vary over an axis that out_specs does not mention; name the axis there, or
//         combine the blocks with psum, pmean or all_gather(..., to_invarying)
// note: result 1 is float32[]{V:data}, axis data
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return CURE((ts::sum(block)), (ts::psum<"data">(ts::sum(block)))); };
using result = decltype(ts::shard_map<ts::out_specs<P<>>>(body_of)(floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
