// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: a value of the body is used outside of it; return it as carry or as output
// note: float32[4@data,8]
#include "cure.hpp"
#include "trained.hpp"

#include <tessera/ops/control.hpp>

inline constexpr auto step = [](auto x) {
  auto seen = x;
  auto [carry, ys] = ts::scan<3>(
      [&](auto c) {
        auto next = ts::sin(c);
        CURE((seen = next;), ())
        return std::pair(next, ts::none);
      },
      x);
  return carry + seen;
};
static_assert(lowers<step, batch>());
