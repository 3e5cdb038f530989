// SPDX-License-Identifier: Apache-2.0
// expect: tessera: mesh: an axis has no devices; write axis<"name", 1> or more
// note: axis data of size 0
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", CURE((0), (1))>>;
static_assert(cluster::devices >= 0);
