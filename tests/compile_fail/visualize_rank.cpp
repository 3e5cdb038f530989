// SPDX-License-Identifier: Apache-2.0
// expect: tessera: visualize_array_sharding: only arrays of 1 or 2 dimensions can be drawn; slice or reshape it first
// note: float32[8@data,4,2]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/visualize.hpp>

void drawn() {
  ts::visualize_array_sharding<
      ts::tensor<ts::f32, CURE((ts::shape<8, 4, 2>), (ts::shape<8, 8>)), P<"data">, cluster>>();
}
