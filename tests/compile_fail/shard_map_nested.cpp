// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: the axis is Manual already; name other axes in axis_names<...>
// note: axis data
#include "arrays.hpp"
#include "cure.hpp"

inline constexpr auto inner = [](auto block) { return block; };
inline constexpr auto outer = [](auto block) {
  return ts::shard_map<ts::axis_names<CURE(("data"), ("model"))>, ts::out_specs<P<>>>(inner)(block);
};
using result =
    decltype(ts::shard_map<ts::axis_names<"data">, ts::out_specs<P<"data">>>(outer)(floats<ts::shape<8>, P<"data">>));
static_assert(ts::ArrayLike<result>);
