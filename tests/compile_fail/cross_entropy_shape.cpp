// SPDX-License-Identifier: Apache-2.0
// expect: tessera: softmax_cross_entropy: labels need the shape of the logits without classes; reshape them
// note: of float32[32@data,64] and int32[32@data,1]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/optim/losses.hpp>

inline constexpr auto& logits = floats<ts::shape<32, 64>, P<"data">>;
inline constexpr auto& labels = array<ts::i32, ts::shape<CURE((32, 1), (32))>, P<"data">>;
using losses = decltype(ts::optim::softmax_cross_entropy_with_integer_labels(logits, labels));
static_assert(ts::ArrayLike<losses>);
