// SPDX-License-Identifier: Apache-2.0
// expect: tessera: custom_vjp: a cotangent is not of the type of its argument; convert, reshape or reshard it
// note: float32[32@data] and float32[32]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>

inline constexpr auto f = ts::custom_vjp([](auto x) { return x; }, [](auto x) { return std::pair(x, x); },
                                         [](auto, auto ct) { return std::tuple(CURE((ts::reshard<P<>>(ct)), (ct))); });
inline constexpr auto step = [](auto x) { return f(x); };
static_assert(ts::lowered<step, ts::tensor<ts::f32, ts::shape<32>, P<"data">, cluster>>::collectives().all_gather == 0);
