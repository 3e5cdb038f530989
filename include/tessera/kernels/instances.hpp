// SPDX-License-Identifier: Apache-2.0
// The kernels for usual element types, compiled once for all of a program's files: with TESSERA_PRECOMPILED_KERNELS
// files only refer to them, and the one file that defines TESSERA_INSTANTIATE_KERNELS has them. Without either, each
// file compiles what it uses.
#pragma once

#include <tessera/kernels/detail/instance.hpp>

#if defined(TESSERA_INSTANCE)

#include <tessera/kernels/argsort.hpp>
#include <tessera/kernels/cumulative.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/reduce.hpp>
#include <tessera/kernels/softmax.hpp>

#include <cstdint>

#define TESSERA_NUMBER_KERNELS(T)                                                                                 \
  TESSERA_INSTANCE void reduce<T>(reduce_kind, const T*, compute_t<T>*, std::int64_t, std::int64_t, std::int64_t, \
                                  bool);                                                                          \
  TESSERA_INSTANCE void add_shards<T>(reduce_kind, T*, const T* const*, int, std::int64_t, bool);

#define TESSERA_AXIS_KERNELS(T)                                                               \
  TESSERA_INSTANCE void cumulative<T>(cumulative_kind, const axis_walk&, const T*, T*, bool); \
  TESSERA_INSTANCE void argsort<T>(const argsort_problem&, const T*, std::int32_t*, bool);

#define TESSERA_FLOAT_KERNELS(T)                                                                       \
  TESSERA_NUMBER_KERNELS(T)                                                                            \
  TESSERA_INSTANCE void recurrence<T>(const axis_walk&, bool, const T*, const T*, T*, bool);           \
  TESSERA_INSTANCE void gemm<T>(const gemm_problem<T>&, bool);                                         \
  TESSERA_INSTANCE void softmax<T>(const T*, T*, std::int64_t, std::int64_t, bool);                    \
  TESSERA_INSTANCE void log_softmax<T>(const T*, T*, std::int64_t, std::int64_t, bool);                \
  TESSERA_INSTANCE void softmax_backward<T>(const T*, const T*, T*, std::int64_t, std::int64_t, bool); \
  TESSERA_INSTANCE void log_softmax_backward<T>(const T*, const T*, T*, std::int64_t, std::int64_t, bool);

namespace tessera::kernels {

TESSERA_AXIS_KERNELS(float)
TESSERA_AXIS_KERNELS(double)
TESSERA_AXIS_KERNELS(std::int32_t)
TESSERA_AXIS_KERNELS(std::uint32_t)
TESSERA_FLOAT_KERNELS(float)
TESSERA_FLOAT_KERNELS(double)
TESSERA_NUMBER_KERNELS(std::int32_t)
TESSERA_NUMBER_KERNELS(std::uint32_t)
TESSERA_NUMBER_KERNELS(bool)
TESSERA_NUMBER_KERNELS(bfloat16)
TESSERA_NUMBER_KERNELS(float16)
TESSERA_INSTANCE void gemm<bfloat16>(const gemm_problem<bfloat16>&, bool);
TESSERA_INSTANCE void gemm<float16>(const gemm_problem<float16>&, bool);

}  // namespace tessera::kernels

#undef TESSERA_FLOAT_KERNELS
#undef TESSERA_AXIS_KERNELS
#undef TESSERA_NUMBER_KERNELS

#endif
