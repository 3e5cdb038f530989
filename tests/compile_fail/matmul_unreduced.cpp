// SPDX-License-Identifier: Apache-2.0
// expect: tessera: matmul: the unreduced axes are not exactly those that cut both contracting dimensions alike;
//         name just these axes or reshard an operand
// note: matmul of float32[32,256@model] and float32[256@model,64]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& h = floats<ts::shape<32, 256>, P<none, "model">>;
inline constexpr auto& w = floats<ts::shape<256, 64>, P<"model">>;
using result = decltype(ts::matmul(h, w, ts::out_sharding<P<ts::unreduced<CURE(("data"), ("model"))>>>));
static_assert(ts::ArrayLike<result>);
