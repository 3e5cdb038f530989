// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: the factor beside an unreduced array is not reduced over the same axes; reshard it
//         to reduced<...> or reduce the array first
// note: multiply of float32[32]{U:data} and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& z = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
inline constexpr auto& scale = floats<ts::shape<32>>;
using result = decltype(z * CURE((scale), (ts::reshard<P<ts::reduced<"data">>>(scale))));
static_assert(ts::ArrayLike<result>);
