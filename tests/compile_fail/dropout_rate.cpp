// SPDX-License-Identifier: Apache-2.0
// expect: tessera: dropout: the rate is outside [0, 1]; write a probability
#include "cure.hpp"

#include <tessera/nn/dropout.hpp>

using layer = tessera::nn::dropout<CURE((1.1), (0.1))>;
static_assert(sizeof(layer) > 0);
