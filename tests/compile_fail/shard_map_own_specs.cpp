// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: in_specs has a spec for a module, whose variables have their own; write own_specs for it
#include "cure.hpp"
#include "trained.hpp"

inline constexpr auto step = [](auto& model, auto x) {
  return ts::shard_map<ts::in_specs<CURE((P<>), (ts::own_specs)), P<"data">>, ts::out_specs<P<"data">>>(
      [](auto& layer_of_blocks, auto rows) { return layer_of_blocks(rows); })(model, x);
};
static_assert(lowers<step, model_type, batch>());
