// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: an axis is Manual or Auto here and cuts no array; leave it out
// note: reshard of float32[8,4]{V:data} to float32[8,4]{V:data}, dimension 0, axis model of size 4
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::reshard<CURE((P<"model">), (P<>))>(varying<ts::shape<8, 4>>));
static_assert(ts::ArrayLike<result>);
