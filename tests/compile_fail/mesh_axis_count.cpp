// SPDX-License-Identifier: Apache-2.0
// expect: tessera: mesh: there are more than 8 axes; merge some of them
// note: a b c d
#include "cure.hpp"

#include <tessera/types.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"a", 1>, ts::axis<"b", 1>, ts::axis<"c", 1>, ts::axis<"d", 1>, ts::axis<"e", 1>,
                         ts::axis<"f", 1>, ts::axis<"g", 1>, ts::axis<"h", 2> CURE((, ts::axis<"i", 1>), ())>;
static_assert(cluster::devices > 0);
