// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: operations take traced arrays, not tensors; call them in a step, jit<step>(x, ...)
// note: float32[4@data,8]
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto forward = [](auto& model, auto x) { return model(x); };
void run(layer& model, const batch& x) {
  CURE((forward(model, x)), (static_cast<void>(lowers<forward, model_type, batch>())));
}
