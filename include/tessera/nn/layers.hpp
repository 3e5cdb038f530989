// SPDX-License-Identifier: Apache-2.0
// All layers.
#pragma once

#include <tessera/nn/attention.hpp>
#include <tessera/nn/batch_norm.hpp>
#include <tessera/nn/containers.hpp>
#include <tessera/nn/conv.hpp>
#include <tessera/nn/dropout.hpp>
#include <tessera/nn/embed.hpp>
#include <tessera/nn/group_norm.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/linear_general.hpp>
#include <tessera/nn/mlp.hpp>
#include <tessera/nn/rotary.hpp>
#include <tessera/nn/transformer_block.hpp>
