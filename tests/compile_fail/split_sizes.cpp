// SPDX-License-Identifier: Apache-2.0
// expect: tessera: split: the sizes do not add up to the extent; name all of them
// note: split of float32[32,64], dimension 1
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(std::get<0>(ts::split<1, 32, CURE((16), (32))>(floats<ts::shape<32, 64>>)));
static_assert(ts::ArrayLike<result>);
