// SPDX-License-Identifier: Apache-2.0
// A counted loop that runs on TBB's threads or, when that does not pay, on the caller's.
#pragma once

#include <cstdint>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace tessera::kernels {

/// Calls f(i) once for every i in [0, n), in any order and on any thread of the current arena when `parallel`, else in
/// order on this thread. Each thread gets one contiguous range of about equal length, which costs less than a
/// microsecond.
///
/// While the caller waits, it may run other tasks of its arena: hold no lock and no thread_local buffer across this
/// call. The first exception thrown by f leaves the call once the loop has stopped.
template <class F>
void parallel_for(std::int64_t n, bool parallel, F&& f) {
  if (!parallel || n <= 1) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  tbb::parallel_for(
      tbb::blocked_range<std::int64_t>(0, n),
      [&f](const tbb::blocked_range<std::int64_t>& range) {
        for (std::int64_t i = range.begin(); i != range.end(); ++i) f(i);
      },
      tbb::static_partitioner());
}

/// How many threads can work in the current arena: a hint for cutting work, never a reason to change an order of
/// summation.
inline std::int64_t concurrency() { return tbb::this_task_arena::max_concurrency(); }

}  // namespace tessera::kernels
