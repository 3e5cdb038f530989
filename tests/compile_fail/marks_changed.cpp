// SPDX-License-Identifier: Apache-2.0
// expect: tessera: out_sharding: the unreduced or reduced axes are not those of the operand; write reshard<P<...>>
//         for that
// note: reshape of float32[32]{U:data}
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& z = floats<ts::shape<32>, P<ts::unreduced<"data">>>;
using result = decltype(ts::reshape<4, 8>(CURE((z), (ts::reshard<P<>>(z))), ts::out_sharding<P<"data">>));
static_assert(ts::ArrayLike<result>);
