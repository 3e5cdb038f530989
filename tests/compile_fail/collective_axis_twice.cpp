// SPDX-License-Identifier: Apache-2.0
// expect: tessera: collective: an axis is named twice; name each once
// note: psum of float32[4]{V:data,model}, axis data of size 2
#include "bodies.hpp"
#include "cure.hpp"

using result = decltype(ts::psum<"data", CURE(("data"), ("model"))>(varying<ts::shape<4>, data | model>));
static_assert(ts::ArrayLike<result>);
