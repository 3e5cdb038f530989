// SPDX-License-Identifier: Apache-2.0
// The whole library.
#pragma once

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/rngs.hpp>
#include <tessera/runtime/jit.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/types.hpp>
