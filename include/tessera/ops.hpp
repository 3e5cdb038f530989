// SPDX-License-Identifier: Apache-2.0
// Every operation that can be traced: those of types.hpp, and what costs more to read: gathers and updates, products by
// name, convolutions, random numbers, loops and branches, collectives, regions with a mesh or a gradient of their own.
#pragma once

#include <tessera/ops/at.hpp>
#include <tessera/ops/collectives.hpp>
#include <tessera/ops/control.hpp>
#include <tessera/ops/conv.hpp>
#include <tessera/ops/cumulative.hpp>
#include <tessera/ops/custom_op.hpp>
#include <tessera/ops/custom_vjp.hpp>
#include <tessera/ops/dot_general.hpp>
#include <tessera/ops/dynamic_slice.hpp>
#include <tessera/ops/einsum.hpp>
#include <tessera/ops/gather.hpp>
#include <tessera/ops/random.hpp>
#include <tessera/ops/sort.hpp>
#include <tessera/ops/unroll.hpp>
#include <tessera/transform/checkpoint.hpp>
#include <tessera/transform/regions.hpp>
#include <tessera/transform/shard_map.hpp>
#include <tessera/transform/vmap.hpp>
#include <tessera/types.hpp>
