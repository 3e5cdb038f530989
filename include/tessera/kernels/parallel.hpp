// SPDX-License-Identifier: Apache-2.0
// A counted loop that runs on TBB's threads or, when that does not pay, on the caller's.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace tessera::kernels {

/// Told of each range of a loop that a thread has worked on; see runtime/trace.hpp.
struct range_observer {
  virtual std::int64_t now() const = 0;
  virtual void worked(std::int64_t begin) const = 0;

 protected:
  ~range_observer() = default;
};

/// Who observes the loops that this thread starts, or null.
inline thread_local constinit const range_observer* observer = nullptr;

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
      [&f, watching = observer](const tbb::blocked_range<std::int64_t>& range) {
        const std::int64_t begin = watching != nullptr ? watching->now() : 0;
        for (std::int64_t i = range.begin(); i != range.end(); ++i) f(i);
        if (watching != nullptr) watching->worked(begin);
      },
      tbb::static_partitioner());
}

/// How many threads can work in the current arena, as many as the process may have (see runtime/threads.hpp): a hint
/// for cutting work, never a reason to change an order of summation.
inline std::int64_t concurrency() {
  const auto allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::min<std::int64_t>(tbb::this_task_arena::max_concurrency(), static_cast<std::int64_t>(allowed));
}

}  // namespace tessera::kernels
