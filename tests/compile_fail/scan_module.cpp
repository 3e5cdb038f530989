// SPDX-License-Identifier: Apache-2.0
// expect: tessera: scan: a module is scanned over as a whole; make it nn::stack<N, layer>, or pass its arrays
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/nn/stack.hpp>

struct weights {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<CURE((3, ), ()) 4>> scale;
  TESSERA_MODULE(weights, scale)
};

inline constexpr auto body = [](auto carry, auto layer) { return std::pair(carry * layer.scale, none); };
using layers = CURE((weights), (ts::nn::stack<3, weights>));
using result = decltype(ts::scan(body, floats<ts::shape<4>>, layers{}).first);
static_assert(ts::ArrayLike<result>);
