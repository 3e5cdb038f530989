// SPDX-License-Identifier: Apache-2.0
// expect: tessera: join_schedules: there is not one boundary less than schedules; write one between any two of them
#include "cure.hpp"

#include <tessera/optim/piecewise.hpp>

namespace ts = tessera;

auto make() {
  using namespace ts::optim;
  return join_schedules({CURE((10, 20), (10))}, constant_schedule(1), constant_schedule(2));
}
