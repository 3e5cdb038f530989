// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: an extent is not divisible by the devices along its axes; use the nearest extent
//         or another axis
// note: float32[30,64], dimension 0
// note: nearest extent 32
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 8>>;
using batch = ts::tensor<ts::f32, ts::shape<CURE((30), (32)), 64>, ts::P<"data">, cluster>;
static_assert(batch::type.rank == 2);
