// SPDX-License-Identifier: Apache-2.0
// expect: tessera: layout: a sharded dimension would change and its elements move between devices; write
//         out_sharding<P<...>> or reshard first
// note: slice of float32[32@data,64], dimension 0, axis data of size 2
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto& batch = floats<ts::shape<32, 64>, P<"data">>;
using result = decltype(ts::slice<ts::range{0, 8}>(batch CURE((), (, ts::out_sharding<P<"data">>))));
static_assert(ts::ArrayLike<result>);
