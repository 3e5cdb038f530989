// SPDX-License-Identifier: Apache-2.0
// expect: tessera: layer: an option is not one of this layer, or is given twice; see the options of the layer
#include "cure.hpp"

#include <tessera/nn/linear.hpp>

namespace ts = tessera;
using ts::P, ts::none;

using layer = ts::nn::linear<64, 64, CURE((P<none, "model">), (ts::kernel<P<none, "model">>))>;
static_assert(layer::in_features == 64);
