// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: an axis has two uses among cutting a dimension, unreduced and reduced; keep one
// note: axis data
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
using batch =
    ts::tensor<ts::f32, ts::shape<32, 64>,
               CURE((ts::P<"data", ts::unreduced<"data">>), (ts::P<"data", ts::unreduced<"model">>)), cluster>;
static_assert(batch::type.rank == 2);
