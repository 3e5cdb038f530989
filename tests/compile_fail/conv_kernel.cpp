// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: the kernel is not spatial dimensions, input channels, output channels; transpose or reshape it
// note: conv of float32[8,12,12,3] and float32[3,3,16,3]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::conv(floats<ts::shape<8, 12, 12, 3>>, floats<ts::shape<3, 3, CURE((16, 3), (3, 16))>>));
static_assert(ts::ArrayLike<result>);
