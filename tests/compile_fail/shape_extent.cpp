// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shape: an extent is negative; write zero or more
// note: dimension 1
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using batch = ts::tensor<ts::f32, ts::shape<32, CURE((-1), (1))>>;
static_assert(batch::type.rank == 2);
