// SPDX-License-Identifier: Apache-2.0
// expect: tessera: variable: it is const and cannot be assigned; take its module as auto& and pass one that
//         is not const
// note: float32[4]
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto& model, auto x) {
  model.bias = model.bias * 0.5;
  return model(x);
};
static_assert(lowers<step, CURE((const model_type), (model_type)), batch>());
