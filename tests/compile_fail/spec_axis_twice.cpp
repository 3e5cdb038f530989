// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: an axis is used twice; keep it on one dimension
// note: axis data
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>>;
using batch = ts::tensor<ts::f32, ts::shape<32, 64>, CURE((ts::P<"data", "data">), (ts::P<"data">)), cluster>;
static_assert(batch::type.rank == 2);
