// SPDX-License-Identifier: Apache-2.0
// expect: tessera: ppermute: pairs can be written for at most 24 devices along an axis; write ring<...> or shift<...>
// note: ppermute of float32[4]{V:x}, axis x of size 32
#include "bodies.hpp"
#include "cure.hpp"

using ring = ts::mesh<ts::axis<"x", 32>>;
using handle = ts::expr<varying<ts::shape<4>>.type, ts::manual_region<ring, 1>>;
using result = decltype(ts::ppermute<"x" CURE((, ts::send<0, 1>), ())>(handle {} CURE((), (, ts::shift<1>))));
static_assert(ts::ArrayLike<result>);
