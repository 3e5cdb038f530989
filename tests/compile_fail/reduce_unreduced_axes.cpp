// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reduce: an unreduced axis of out_sharding cuts no dimension that is reduced; drop it or reshard
//         first
// note: sum of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32, 64>, P<"data">>;
using result = decltype(ts::sum<0>(x, ts::out_sharding<P<ts::unreduced<CURE(("model"), ("data"))>>>));
static_assert(ts::ArrayLike<result>);
