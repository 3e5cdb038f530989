// SPDX-License-Identifier: Apache-2.0
// expect: tessera: conv: the groups do not divide the outputs, or the kernel has not the channels of one group; reshape
//         the kernel or name another feature_group_count<...>
#include "arrays.hpp"
#include "cure.hpp"

using result =
    decltype(ts::conv(floats<ts::shape<2, 8, 6>>, floats<ts::shape<3, 3, 4>>, ts::feature_group_count<CURE((3), (2))>));
static_assert(ts::ArrayLike<result>);
