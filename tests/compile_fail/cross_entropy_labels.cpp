// SPDX-License-Identifier: Apache-2.0
// expect: tessera: softmax_cross_entropy: labels are not integers; convert them with astype<i32>
// note: of float32[32@data,64] and float32[32@data]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/optim/losses.hpp>

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, P<"data">, cluster>;

using labels = ts::tensor<CURE((ts::f32), (ts::i32)), ts::shape<32>, P<"data">, cluster>;
inline constexpr auto step = [](auto logits, auto labels) {
  return ts::mean(ts::optim::softmax_cross_entropy_with_integer_labels(logits, labels));
};
static_assert(ts::lowered<step, batch, labels>::collectives().all_gather == 0);
