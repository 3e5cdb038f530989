// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: axis_names names an axis the mesh does not have; name one of its axes
// note: axis rows
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto body_of = [](auto block) { return block; };
using result = decltype(ts::shard_map<ts::axis_names<CURE(("rows"), ("data"))>, ts::out_specs<P<"data">>>(body_of)(
    floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
