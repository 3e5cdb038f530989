// SPDX-License-Identifier: Apache-2.0
// expect: tessera: add: only one side is unreduced, or over other axes than the other one; reshard one side first
// note: add of float32[32]{U:model} and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& z = floats<ts::shape<32>, P<ts::unreduced<"model">>>;
inline constexpr auto& bias = floats<ts::shape<32>>;
using result = decltype(CURE((z), (ts::reshard<P<>>(z))) + bias);
static_assert(ts::ArrayLike<result>);
