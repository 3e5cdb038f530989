// SPDX-License-Identifier: Apache-2.0
// expect: tessera: jit: the step is a local variable; make it inline constexpr at namespace scope
#include "cure.hpp"
#include "trained.hpp"

#include <tessera/runtime/jit.hpp>

inline constexpr auto doubled = [](auto x) { return x * 2; };
void run(const batch& x) {
  constexpr auto step = [](auto v) { return v * 2; };
  static_cast<void>(ts::jit<CURE((step), (doubled))>(x));
  static_cast<void>(step);
}
