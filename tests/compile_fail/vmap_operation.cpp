// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: the function has an operation that cannot be mapped; call it outside, or use scan
// note: custom_op to float32[8]
#include <tessera/tessera.hpp>

#include "arrays.hpp"
#include "cure.hpp"

struct halve {
  static constexpr auto name = ts::text("halve");
  static constexpr ts::ruling rule(std::span<const ts::aval> x, const ts::mesh_value&) { return {x[0]}; }
  static void run(const ts::custom_call&) {}
};

using batch = ts::tensor<ts::f32, ts::shape<4, 8>, P<>, cluster>;

inline constexpr auto halved = [](auto x) { return ts::custom_op<halve>(x); };
inline constexpr auto all_halved = [](auto x) {
  return ts::scan([](auto carry, auto row) { return std::pair(carry, halved(row)); }, 0, x).second;
};
inline constexpr auto step = [](auto x) { return CURE((ts::vmap(halved)(x)), (all_halved(x))); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
