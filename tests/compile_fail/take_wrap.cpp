// SPDX-License-Identifier: Apache-2.0
// expect: tessera: take: several indices cannot wrap around together; take one dimension at a time
// note: at.get of float32[100,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::at(floats<ts::shape<100, 16>>,
                               array<ts::i32, ts::shape<32>> CURE((, array<ts::i32, ts::shape<32>>), ()), ts::mode_wrap)
                            .get());
static_assert(ts::ArrayLike<result>);
