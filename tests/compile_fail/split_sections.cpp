// SPDX-License-Identifier: Apache-2.0
// expect: tessera: split: the extent is not divisible by the number of sections; write the sizes
// note: split of float32[32,64], dimension 1
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(std::get<0>(ts::split<1, CURE((3), (4))>(floats<ts::shape<32, 64>>)));
static_assert(ts::ArrayLike<result>);
