// SPDX-License-Identifier: Apache-2.0
// expect: tessera: value_and_grad: the loss is not floating-point; convert it with astype<f32>
// note: loss is int32[]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

inline constexpr auto loss = [](auto x) { return ts::sum(CURE((ts::astype<ts::i32>(x)), (x))); };
inline constexpr auto step = [](auto x) { return ts::grad(loss)(x); };
static_assert(ts::lowered<step, batch>::collectives().all_gather == 0);
