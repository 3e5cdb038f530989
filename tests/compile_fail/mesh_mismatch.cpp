// SPDX-License-Identifier: Apache-2.0
// expect: tessera: mesh: operands live on different meshes; put all of them on one mesh
// note: add of float32[32@data] and float32[32@data], mesh data=2,model=4, mesh data=8
#include "arrays.hpp"
#include "cure.hpp"

using other = ts::mesh<ts::axis<"data", 8>>;
using result =
    decltype(floats<ts::shape<32>, P<"data">> + array<ts::f32, ts::shape<32>, P<"data">, CURE((other), (cluster))>);
static_assert(ts::ArrayLike<result>);
