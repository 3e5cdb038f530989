// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: the function has an operation that cannot be mapped; call it outside, or use scan
// note: while_loop
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>

using batch = ts::tensor<ts::f32, ts::shape<4>, P<>, cluster>;

inline constexpr auto doubled = [](auto x) {
  return CURE((ts::while_loop([](auto v) { return v < 100; }, [](auto v) { return v * 2; }, x)),
              (ts::scan<7>([](auto v) { return std::pair(ts::where(v < 100, v * 2, v), none); }, x).first));
};
inline constexpr auto step = [](auto x) { return ts::vmap(doubled)(x); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
