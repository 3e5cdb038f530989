// SPDX-License-Identifier: Apache-2.0
// The executor and its steps for usual element types, compiled once for all of a program's files; see
// kernels/instances.hpp.
#pragma once

#include <tessera/kernels/instances.hpp>
#include <tessera/nn/pure_dict.hpp>
#include <tessera/optim/transformation.hpp>
#include <tessera/runtime/call.hpp>
#include <tessera/runtime/executor.hpp>
#include <tessera/runtime/step_functions.hpp>
#include <tessera/runtime/tensor.hpp>

#if defined(TESSERA_INSTANCE)

#include <cstdint>

#define TESSERA_MOVEMENT_STEP(kind, T) \
  TESSERA_INSTANCE void executor::run_movement<graph::step_kind::kind, T>(const graph::step&);

#define TESSERA_MOVEMENT_STEPS(T)          \
  TESSERA_MOVEMENT_STEP(update_slice, T)   \
  TESSERA_MOVEMENT_STEP(dynamic_slice, T)  \
  TESSERA_MOVEMENT_STEP(dynamic_update, T) \
  TESSERA_MOVEMENT_STEP(gather, T)         \
  TESSERA_MOVEMENT_STEP(scatter, T)

#define TESSERA_BLOCK_STEP(kind, T) \
  TESSERA_INSTANCE void executor::run_block<graph::step_kind::kind, T>(const graph::step&, row_block&) const;

#define TESSERA_NUMBER_STEPS(T)                                          \
  TESSERA_INSTANCE void executor::run_dot<T>(const graph::step&);        \
  TESSERA_INSTANCE void executor::run_reduce<T>(const graph::step&);     \
  TESSERA_BLOCK_STEP(reduce, T)                                          \
  TESSERA_INSTANCE void executor::run_cumulative<T>(const graph::step&); \
  TESSERA_INSTANCE void executor::run_argsort<T>(const graph::step&);    \
  TESSERA_INSTANCE void executor::run_collective<T>(const graph::step&); \
  TESSERA_MOVEMENT_STEPS(T)                                              \
  TESSERA_MOVEMENT_STEP(overlap_add, T)

#define TESSERA_ROW_STEP(kind, T)                                                          \
  TESSERA_INSTANCE void executor::run_rows<graph::step_kind::kind, T>(const graph::step&); \
  TESSERA_BLOCK_STEP(kind, T)

#define TESSERA_FLOAT_STEPS(T)                                           \
  TESSERA_NUMBER_STEPS(T)                                                \
  TESSERA_INSTANCE void executor::run_recurrence<T>(const graph::step&); \
  TESSERA_BLOCK_STEP(dot, T)                                             \
  TESSERA_ROW_STEP(softmax, T)                                           \
  TESSERA_ROW_STEP(log_softmax, T)                                       \
  TESSERA_ROW_STEP(softmax_grad, T)                                      \
  TESSERA_ROW_STEP(log_softmax_grad, T)

namespace tessera::runtime {

TESSERA_INSTANCE class basic_executor<void>;
TESSERA_FLOAT_STEPS(float)
TESSERA_FLOAT_STEPS(double)
TESSERA_NUMBER_STEPS(std::int32_t)
TESSERA_NUMBER_STEPS(std::uint32_t)
TESSERA_INSTANCE void executor::run_reduce<bool>(const graph::step&);
TESSERA_BLOCK_STEP(reduce, bool)
TESSERA_INSTANCE void executor::run_collective<bool>(const graph::step&);
TESSERA_MOVEMENT_STEPS(bool)
TESSERA_MOVEMENT_STEPS(std::uint8_t)
TESSERA_INSTANCE void executor::run_check<std::int32_t>(const graph::step&);
TESSERA_INSTANCE void executor::run_check<std::uint32_t>(const graph::step&);

}  // namespace tessera::runtime

#undef TESSERA_FLOAT_STEPS
#undef TESSERA_ROW_STEP
#undef TESSERA_NUMBER_STEPS
#undef TESSERA_BLOCK_STEP
#undef TESSERA_MOVEMENT_STEPS
#undef TESSERA_MOVEMENT_STEP

#endif
