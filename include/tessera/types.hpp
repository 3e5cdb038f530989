// SPDX-License-Identifier: Apache-2.0
// Types, sharding rules and traced operations: all that compile-time checks need, without SIMD, threads or host arrays.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/analysis/visualize.hpp>
#include <tessera/core/type_text.hpp>
#include <tessera/core/units.hpp>
#include <tessera/ops/argmax.hpp>
#include <tessera/ops/at.hpp>
#include <tessera/ops/collectives.hpp>
#include <tessera/ops/control.hpp>
#include <tessera/ops/convert.hpp>
#include <tessera/ops/create.hpp>
#include <tessera/ops/dims.hpp>
#include <tessera/ops/dynamic_slice.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/gather.hpp>
#include <tessera/ops/join.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/one_hot.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/reshard.hpp>
#include <tessera/ops/shape.hpp>
#include <tessera/ops/slice.hpp>
#include <tessera/ops/softmax.hpp>
#include <tessera/ops/statistics.hpp>
#include <tessera/ops/where.hpp>
#include <tessera/runtime/tensor.hpp>
#include <tessera/transform/checkpoint.hpp>
#include <tessera/transform/shard_map.hpp>
