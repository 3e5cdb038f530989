// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: a result is no traced value; return arrays, or a tuple of them
// note: a variable, float32[4]
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto& model) { return CURE((model.bias), (ts::reshard<P<>>(model.bias))); };
static_assert(lowers<step, model_type>());
