// SPDX-License-Identifier: Apache-2.0
// expect: tessera: softmax_cross_entropy: the logits have no classes; give them a last dimension
// note: of float32[] and int32[]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/optim/losses.hpp>

inline constexpr auto& logits = floats<ts::shape<CURE((), (10))>>;
inline constexpr auto& labels = array<ts::i32, ts::shape<>>;
using losses = decltype(ts::optim::softmax_cross_entropy_with_integer_labels(logits, labels));
static_assert(ts::ArrayLike<losses>);
