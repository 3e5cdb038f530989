// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dynamic_slice: there is not one start and one size a dimension; name all of them
// note: dynamic_slice of float32[32,64] and int32[]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::dynamic_slice<8, 64>(
    floats<ts::shape<32, 64>>, array<ts::i32, ts::shape<>> CURE((), (, array<ts::i32, ts::shape<>>))));
static_assert(ts::ArrayLike<result>);
