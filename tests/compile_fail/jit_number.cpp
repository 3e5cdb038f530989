// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: a number is of a type that is no dtype; convert it to float, double, std::int32_t, std::uint32_t
//         or bool
// note: argument 2 of the step
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto x, auto n) { return x * ts::astype<ts::f32>(n); };
static_assert(lowers<step, batch, CURE((long), (int))>());
