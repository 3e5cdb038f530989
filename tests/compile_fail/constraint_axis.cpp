// SPDX-License-Identifier: Apache-2.0
// expect: tessera: with_sharding_constraint: the axis is not Auto, its place is in the type; name Auto axes only
// note: with_sharding_constraint of float32[8@x,2], dimension 0, axis x of size 4
#include "arrays.hpp"
#include "cure.hpp"

using mixed = ts::mesh<ts::axis<"x", 4>, ts::auto_axis<"y", 2>>;
using result =
    decltype(ts::with_sharding_constraint<P<CURE(("x"), (none, "y"))>>(array<ts::f32, ts::shape<8, 2>, P<"x">, mixed>));
static_assert(ts::ArrayLike<result>);
