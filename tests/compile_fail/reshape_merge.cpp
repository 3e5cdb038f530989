// SPDX-License-Identifier: Apache-2.0
// expect: tessera: reshape: a merge would move data between devices; reshard first or write out_sharding<P<...>>
// note: reshape of float32[32,64@model] to float32[2048]
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& x = floats<ts::shape<32, 64>, P<none, "model">>;
using result = decltype(ts::reshape<2048>(CURE((x), (ts::reshard<P<>>(x)))));
static_assert(ts::ArrayLike<result>);
