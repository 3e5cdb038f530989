// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: the mesh has no axis of this name; name one of its axes
// note: psum of float32[4]{V:data}, axis rows
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::psum<CURE(("rows"), ("data"))>(varying<ts::shape<4>>));
static_assert(ts::ArrayLike<result>);
