// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: an output is no array; return arrays, tuples of them or none
#include <tessera/nn/variable.hpp>

#include "arrays.hpp"
#include "cure.hpp"

struct scale {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4>> factor;
  TESSERA_MODULE(scale, factor)
};
inline constexpr auto body = [](auto carry, auto x) { return std::pair(carry + x, CURE((scale{}), (x))); };
using result = decltype(ts::scan(body, floats<ts::shape<4>>, floats<ts::shape<3, 4>>).first);
static_assert(ts::ArrayLike<result>);
