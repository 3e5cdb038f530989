// SPDX-License-Identifier: Apache-2.0
// expect: tessera: out_sharding: the operation cannot leave its result unreduced or reduced; write
//         reshard<P<...>>(result)
// note: mean of float32[32@data,64] to float32[64]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32, 64>, P<"data">>;
using result = decltype(CURE((ts::mean), (ts::sum)) < 0 > (x, ts::out_sharding<P<ts::unreduced<"data">>>));
static_assert(ts::ArrayLike<result>);
