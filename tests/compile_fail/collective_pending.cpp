// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: a sum over the axis is pending in the operand; finish it with psum or psum_scatter
// note: all_gather of float32[4]{U:data}
#include "bodies.hpp"
#include "cure.hpp"

inline constexpr auto& partial = local<ts::f32, ts::shape<4>, manual_state::unreduced>;
using result = decltype(ts::all_gather<"data">(CURE((partial), (ts::psum_scatter<"data">(partial, ts::tiled)))));
static_assert(ts::ArrayLike<result>);
