// SPDX-License-Identifier: Apache-2.0
// expect: tessera: mesh: an axis name is empty or longer than 31 characters; write a shorter name
// note: of size 2
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<CURE((""), ("data")), 2>>;
static_assert(cluster::devices == 2);
