// SPDX-License-Identifier: Apache-2.0
// The whole library, but for files and budgets: those are in io/ and plan/.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/analysis/describe.hpp>
#include <tessera/analysis/fits.hpp>
#include <tessera/analysis/lowered.hpp>
#include <tessera/analysis/saved_residuals.hpp>
#include <tessera/analysis/visualize.hpp>
#include <tessera/nn/filter.hpp>
#include <tessera/nn/functional.hpp>
#include <tessera/nn/key_stream.hpp>
#include <tessera/nn/layers.hpp>
#include <tessera/nn/logical.hpp>
#include <tessera/nn/mode.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/nn/pure_dict.hpp>
#include <tessera/nn/rngs.hpp>
#include <tessera/nn/stack.hpp>
#include <tessera/nn/state.hpp>
#include <tessera/ops.hpp>
#include <tessera/optim/adaptive.hpp>
#include <tessera/optim/contrib.hpp>
#include <tessera/optim/factored.hpp>
#include <tessera/optim/gradient_scaling.hpp>
#include <tessera/optim/losses.hpp>
#include <tessera/optim/masks.hpp>
#include <tessera/optim/optimizers.hpp>
#include <tessera/optim/piecewise.hpp>
#include <tessera/optim/scaling.hpp>
#include <tessera/optim/wrappers.hpp>
#include <tessera/runtime/call.hpp>
#include <tessera/runtime/jit.hpp>
#include <tessera/transform/accumulate.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/types.hpp>
