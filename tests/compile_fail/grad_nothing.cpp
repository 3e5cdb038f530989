// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: the first argument has no parameters; pass a module or a float tensor
// note: first argument is int32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<CURE((ts::i32), (ts::f32)), ts::shape<32, 64>, P<"data">, cluster>;
inline constexpr auto loss = [](auto x) { return ts::sum(x); };
inline constexpr auto step = [](auto x) { return ts::grad(loss)(x); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
