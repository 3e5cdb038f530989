// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: the mesh has no such axis; name one of its axes
// note: model
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>>;
using batch = ts::tensor<ts::f32, ts::shape<32, 64>, ts::P<CURE(("model"), ("data"))>, cluster>;
static_assert(batch::type.rank == 2);
