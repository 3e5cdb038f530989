// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: one operand is sharded on the contracting dimension and would be moved silently; write
//         reshard<P<...>>(operand) or out_sharding<P<...>>
// note: matmul of float32[32@data,256@model] and float32[256,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& h = floats<ts::shape<32, 256>, P<"data", "model">>;
using result = decltype(ts::matmul(CURE((h), (ts::reshard<P<"data">>(h))), floats<ts::shape<256, 64>>));
static_assert(ts::ArrayLike<result>);
