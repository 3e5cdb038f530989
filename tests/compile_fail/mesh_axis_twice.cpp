// SPDX-License-Identifier: Apache-2.0
// expect: tessera: mesh: two axes have one name; rename one of them
// note: data data
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<CURE(("data"), ("model")), 2>>;
static_assert(cluster::devices > 0);
