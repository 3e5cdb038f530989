// SPDX-License-Identifier: Apache-2.0
// expect: tessera: partition_spec: a bool array has no pending sum; convert it with astype<...>
// note: bool[32]
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
using mask = ts::tensor<CURE((ts::bool_), (ts::i32)), ts::shape<32>, ts::P<ts::unreduced<"data">>, cluster>;
static_assert(mask::type.rank == 1);
