// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: there are more entries than dimensions; drop the last ones
// note: float32[32,64]
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>>;
using batch =
    ts::tensor<ts::f32, ts::shape<32, 64>, ts::P<CURE((ts::none, ts::none, "data"), (ts::none, "data"))>, cluster>;
static_assert(batch::type.rank == 2);
