// SPDX-License-Identifier: Apache-2.0
// Types, sharding rules and the plain operations: what a file needs that checks specs and what follows from them.
// Without SIMD, threads or host arrays, and quick to read; ops.hpp has the other operations.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/core/finfo.hpp>
#include <tessera/core/type_text.hpp>
#include <tessera/core/units.hpp>
#include <tessera/ops/activations.hpp>
#include <tessera/ops/argmax.hpp>
#include <tessera/ops/bitwise.hpp>
#include <tessera/ops/clamp.hpp>
#include <tessera/ops/convert.hpp>
#include <tessera/ops/create.hpp>
#include <tessera/ops/dims.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/join.hpp>
#include <tessera/ops/math.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/one_hot.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/repeat.hpp>
#include <tessera/ops/reshard.hpp>
#include <tessera/ops/shape.hpp>
#include <tessera/ops/slice.hpp>
#include <tessera/ops/softmax.hpp>
#include <tessera/ops/statistics.hpp>
#include <tessera/ops/where.hpp>
#include <tessera/runtime/tensor.hpp>
