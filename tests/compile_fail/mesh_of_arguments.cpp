// SPDX-License-Identifier: Apache-2.0
// expect: tessera: mesh: operands live on different meshes; put all of them on one mesh
// note: arguments on mesh data=2,model=4, data=8
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

using other = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, CURE((ts::mesh<ts::axis<"data", 8>>), (cluster))>;
inline constexpr auto step = [](auto x, auto y) { return ts::mean(x + y); };
static_assert(ts::lowered<step, batch, other>::collectives().all_gather == 0);
