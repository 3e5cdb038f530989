// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: sums and extrema are pending at once; keep one kind of unreduced
// note: axis model
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
using batch = ts::tensor<
    ts::f32, ts::shape<32>,
    CURE((ts::P<ts::unreduced<"data">, ts::unreduced_max<"model">>), (ts::P<ts::unreduced<"data", "model">>)), cluster>;
static_assert(batch::type.rank == 1);
