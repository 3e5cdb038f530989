// SPDX-License-Identifier: Apache-2.0
// expect: tessera: shard_map: no argument says which mesh it runs over; pass an array that lives on one
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/nn/variable.hpp>

inline constexpr auto body_of = [](auto block) { return block; };
extern const ts::nn::variable<ts::nn::param, ts::f32, ts::shape<8>, P<"data">> weight;
using result =
    decltype(ts::shard_map<ts::out_specs<P<"data">>>(body_of)(CURE((weight), (floats<ts::shape<8>, P<"data">>))));
static_assert(ts::ArrayLike<result>);
