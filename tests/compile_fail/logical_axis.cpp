// SPDX-License-Identifier: Apache-2.0
// expect: tessera: rules: no rule names a logical axis; add rule<name, axis> or rule<name, none>
// note: heads
#include <tessera/nn/linear.hpp>
#include <tessera/nn/logical.hpp>

#include "arrays.hpp"
#include "cure.hpp"

namespace nn = ts::nn;
using layout = nn::rules<nn::rule<"embed", ts::none> CURE((), (, nn::rule<"heads", "model">))>;
static_assert(std::is_same_v<layout::spec<"embed", "embed">, P<>>);
ts::nn::linear<8, 8, ts::kernel<layout::spec<"embed", "heads">>> layer;
