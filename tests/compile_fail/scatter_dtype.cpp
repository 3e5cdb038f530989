// SPDX-License-Identifier: Apache-2.0
// expect: tessera: at: the updates have another dtype than the array; convert them with astype<...>
// note: at.set of float32[100,16] and int32[32,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::at(floats<ts::shape<100, 16>>, array<ts::i32, ts::shape<32>>)
                            .set(array<CURE((ts::i32), (ts::f32)), ts::shape<32, 16>>));
static_assert(ts::ArrayLike<result>);
