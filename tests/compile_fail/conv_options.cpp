// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: there is not one number from 1 on for each spatial dimension; name all of them
// note: conv of float32[8,12,12,3] and float32[3,3,3,16]
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::conv(floats<ts::shape<8, 12, 12, 3>>, floats<ts::shape<3, 3, 3, 16>>, ts::strides<2 CURE((), (, 2))>));
static_assert(ts::ArrayLike<result>);
