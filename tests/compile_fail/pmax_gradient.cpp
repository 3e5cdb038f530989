// SPDX-License-Identifier: Apache-2.0
// expect: tessera: pmax: it has no gradient; put the operand into stop_gradient
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<8>, P<"data">, cluster>;

inline constexpr auto loss = [](auto x) {
  return ts::shard_map<ts::out_specs<P<>>>([](auto block) {
    const auto top = ts::pmax<"data">(CURE((block), (ts::stop_gradient(block))));
    return ts::psum<"data">(ts::sum(block - top));
  })(x);
};
inline constexpr auto step = [](auto x) { return ts::grad(loss)(x); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
