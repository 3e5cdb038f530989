// SPDX-License-Identifier: Apache-2.0
// All losses. There is no CTC loss.
#pragma once

#include <tessera/optim/cross_entropy.hpp>
#include <tessera/optim/distances.hpp>
