// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: incompatible shardings for broadcasting; reshard one operand
// note: add of float32[32@data,64] and float32[32@model,64]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(floats<ts::shape<32, 64>, P<"data">> + floats<ts::shape<32, 64>, CURE((P<"model">), (P<"data">))>);
static_assert(ts::ArrayLike<result>);
