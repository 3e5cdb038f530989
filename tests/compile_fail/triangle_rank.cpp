// SPDX-License-Identifier: Apache-2.0
// expect: tessera: tril: the operand has fewer than 2 dimensions; reshape it to a matrix
// note: tril of float32[32]
#include "arrays.hpp"
#include "cure.hpp"

using result = decltype(ts::tril(floats<ts::shape<32 CURE((), (, 1))>>));
static_assert(ts::ArrayLike<result>);
