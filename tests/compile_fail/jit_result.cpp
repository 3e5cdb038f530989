// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: a result is no traced value; return arrays, or a tuple of them
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto step = [](auto x) { return std::pair(ts::mean(x), CURE((0.5), (ts::max(x)))); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
