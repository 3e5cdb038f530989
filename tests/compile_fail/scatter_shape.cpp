// SPDX-License-Identifier: Apache-2.0
// expect: tessera: at: the updates do not have the extents of the chosen elements; reshape or broadcast_to
// note: at.add of float32[100,16] and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::at(floats<ts::shape<100, 16>>, array<ts::i32, ts::shape<32>>)
                            .add(floats<ts::shape<32 CURE((), (, 16))>>));
static_assert(ts::ArrayLike<result>);
