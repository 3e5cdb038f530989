// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pcast: there is no cast between these states; casts are invarying to varying or reduced, varying
//         to unreduced, reduced to varying, for others use all_gather, psum or psum_scatter
// note: pcast of float32[4]{V:data} to float32[4]{R:data}
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::pcast<"data">(varying<ts::shape<4>>, ts::CURE((to_reduced), (to_unreduced))));
static_assert(ts::ArrayLike<result>);
