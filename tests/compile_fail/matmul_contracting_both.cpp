// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: contracting dimensions are sharded and the result is ambiguous; say which you want with
//         out_sharding<P<...>>
// note: matmul of float32[32@data,256@model] and float32[256@model,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& h = floats<ts::shape<32, 256>, P<"data", "model">>;
inline constexpr auto& w = floats<ts::shape<256, 64>, P<"model">>;
using result = decltype(ts::matmul(CURE((h, w), (h, w, ts::out_sharding<P<"data">>))));
static_assert(ts::ArrayLike<result>);
