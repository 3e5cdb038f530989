// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dot_general: a dimension is not there, named twice or without partner; name each once, in pairs
// note: dot_general of float32[32@data,64] and float32[64,16]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::dot_general<ts::dims<CURE((2), (1))>, ts::dims<0>>(floats<ts::shape<32, 64>, P<"data">>,
                                                                               floats<ts::shape<64, 16>>));
static_assert(ts::ArrayLike<result>);
