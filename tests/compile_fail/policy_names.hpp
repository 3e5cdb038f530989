// SPDX-License-Identifier: Apache-2.0
// A step whose checkpoint has one named value.
#pragma once

#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/checkpoint.hpp>
#include <tessera/transform/value_and_grad.hpp>

inline constexpr auto layer = [](auto x, auto w) {
  return ts::tanh(ts::checkpoint_name<"mlp_hidden">(ts::matmul(x, w)));
};
template <auto Policy>
inline constexpr auto step =
    [](auto x, auto w) { return ts::grad([&](auto v) { return ts::sum(ts::checkpoint<Policy>(layer)(x, v)); })(w); };
template <auto Policy>
using program = ts::lowered<step<Policy>, ts::tensor<ts::f32, ts::shape<4, 8>, P<>, cluster>,
                            ts::tensor<ts::f32, ts::shape<8, 8>, P<>, cluster>>;
