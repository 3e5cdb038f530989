// SPDX-License-Identifier: Apache-2.0
// expect: tessera: linear: an option is not one of linear, or is given twice; write kernel<P<...>> or bias<P<...>>, once each
#include "cure.hpp"

#include <tessera/nn/linear.hpp>

namespace ts = tessera;
using ts::P, ts::none;

using layer = ts::nn::linear<64, 64, CURE((P<none, "model">), (ts::kernel<P<none, "model">>))>;
static_assert(layer::options_checked);
