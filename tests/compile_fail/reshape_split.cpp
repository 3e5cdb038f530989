// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reshape: a sharded dimension is split so that its axes fit no new one; write out_sharding<P<...>>
// note: reshape of float32[6@data,64] to float32[3,2,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<6, 64>, P<"data">>;
using result = decltype(ts::reshape<3, 2, 64>(CURE((x), (x, ts::out_sharding<P<none, "data">>))));
static_assert(ts::ArrayLike<result>);
