// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: out_axes says none for a result that depends on what is mapped; name a dimension for it
// note: float32[8]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>

using batch = ts::tensor<ts::f32, ts::shape<4, 8>, P<>, cluster>;

inline constexpr auto twice = [](auto x) { return x * 2; };
inline constexpr auto step = [](auto x) { return ts::vmap<ts::in_axes<0>, ts::out_axes<CURE((none), (1))>>(twice)(x); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
