// SPDX-License-Identifier: Apache-2.0
// expect: tessera: elementwise: the result would use a mesh axis on two dimensions; reshard one operand
// note: add of float32[32@data,64] and float32[32,64@data] to float32[32@data,64@data]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(floats<ts::shape<32, 64>, P<"data">> + floats<ts::shape<32, 64>, P<none, CURE(("data"), ("model"))>>);
static_assert(ts::ArrayLike<result>);
