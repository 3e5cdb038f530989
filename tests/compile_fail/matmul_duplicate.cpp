// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: the result would use a mesh axis on two dimensions; reshard one operand or write
//         out_sharding<P<...>>
// note: matmul of float32[32@data,64] and float32[64,16@data] to float32[32@data,16@data]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32, 64>, P<"data">>;
inline constexpr auto& w = floats<ts::shape<64, 16>, P<none, "data">>;
using result = decltype(ts::matmul(CURE((x, w), (x, w, ts::out_sharding<P<"data">>))));
static_assert(ts::ArrayLike<result>);
