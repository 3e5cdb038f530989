// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the dimension to split is not as long as there are devices; write tiled to cut it in
//         blocks
// note: psum_scatter of float32[8]{V:data}, dimension 0
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::psum_scatter<"data">(varying<ts::shape<8>> CURE((), (, ts::tiled))));
static_assert(ts::ArrayLike<result>);
