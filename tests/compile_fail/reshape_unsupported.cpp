// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reshape: more than one split or merge of a sharded array; reshape in steps or write
//         out_sharding<...>
// note: reshape of float32[8@data,6,10] to float32[12,40]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<8, 6, 10>, P<"data">>;
using result = decltype(ts::reshape<12, 40>(CURE((x), (x, ts::out_sharding<P<"data">>))));
static_assert(ts::ArrayLike<result>);
