// SPDX-License-Identifier: Apache-2.0
// A counted loop that runs on TBB's threads or, when that does not pay, on the caller's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <tessera/kernels/detail/worker_places.hpp>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

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

/// How many threads can work in the current arena, as many as the process may have (see runtime/threads.hpp): a hint
/// for cutting work, never a reason to change an order of summation.
inline std::int64_t concurrency() {
  const auto allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::min<std::int64_t>(tbb::this_task_arena::max_concurrency(), static_cast<std::int64_t>(allowed));
}

namespace detail {

/// What the thread sanitizer cannot see in TBB, whose packages are built without it: every thread of a loop starts
/// after what stands before the loop, and ends before what follows. Threads of one loop are not ordered.
class loop_order {
 public:
  void begin() { release(&begun_); }
  void thread_begins() { acquire(&begun_); }
  void thread_ends() { release(&ended_); }
  void end() { acquire(&ended_); }

 private:
#if defined(__SANITIZE_THREAD__)
  static void release(void* at) { __tsan_release(at); }
  static void acquire(void* at) { __tsan_acquire(at); }
#else
  static void release(void*) {}
  static void acquire(void*) {}
#endif

  std::uint64_t begun_ = 0, ended_ = 0;
};

/// Calls f when it goes out of scope.
template <class F>
struct at_end {
  F f;
  ~at_end() { f(); }
};

/// What is left of one thread's share of a loop: that thread takes from the front, others take from the back.
class loop_share {
 public:
  void start(std::int64_t count) { left_.store(static_cast<std::uint64_t>(count) << 32, std::memory_order_relaxed); }
  void empty() { left_.store(0, std::memory_order_relaxed); }

  /// The number of a piece within the share, or -1 when none is left.
  std::int64_t take_first() {
    return take([](std::uint64_t left) { return left + 1; }, [](std::uint64_t left) { return left & low_half; });
  }
  std::int64_t take_last() {
    constexpr std::uint64_t one = low_half + 1;
    return take([](std::uint64_t left) { return left - one; }, [](std::uint64_t left) { return (left >> 32) - 1; });
  }

 private:
  static constexpr std::uint64_t low_half = 0xffffffff;

  template <class Rest, class Taken>
  std::int64_t take(const Rest& rest, const Taken& taken) {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    do {
      if ((left & low_half) >= left >> 32) return -1;
    } while (!left_.compare_exchange_weak(left, rest(left), std::memory_order_relaxed));
    return static_cast<std::int64_t>(taken(left));
  }

  /// Pieces [low half, high half) are left. A cache line of its own: threads seldom meet.
  alignas(64) std::atomic<std::uint64_t> left_{0};
};

/// A loop over [0, n) in pieces of a few neighbours, for some threads.
template <class F>
class shared_loop {
 public:
  static constexpr std::int64_t most_threads = 64;
  static constexpr std::int64_t pieces_a_thread = 16;

  shared_loop(std::int64_t n, std::int64_t threads, F& f)
      : f_(f), n_(n), threads_(threads), pieces_(std::min(n, threads * pieces_a_thread)) {
    for (std::int64_t t = 0; t < threads; ++t) shares_[t].start(start(t + 1) - start(t));
  }

  /// Thread `t`: its own share, then what the others have left.
  void operator()(std::int64_t t) {
    try {
      for (std::int64_t piece; (piece = shares_[t].take_first()) >= 0;) run(start(t) + piece);
      for (std::int64_t other = t + 1; other < t + threads_; ++other) {
        const std::int64_t from = other % threads_;
        for (std::int64_t piece; (piece = shares_[from].take_last()) >= 0;) run(start(from) + piece);
      }
    } catch (...) {
      for (std::int64_t other = 0; other < threads_; ++other) shares_[other].empty();
      throw;
    }
  }

 private:
  /// The first piece of thread `t`.
  std::int64_t start(std::int64_t t) const { return pieces_ * t / threads_; }
  void run(std::int64_t piece) {
    for (std::int64_t i = n_ * piece / pieces_, end = n_ * (piece + 1) / pieces_; i < end; ++i) f_(i);
  }

  F& f_;
  std::int64_t n_, threads_, pieces_;
  loop_share shares_[most_threads];
};

}  // namespace detail

/// Calls f(i) once for every i in [0, n), in any order and on any thread of the current arena when `parallel`, else in
/// order on this thread. Each thread begins with a range of its own, the same one in every loop of as many threads, so
/// that it finds in its caches what it made before; one that is done early takes over pieces of the others' ranges.
///
/// While the caller waits, it may run other tasks of its arena: hold no lock and no thread_local buffer across this
/// call. The first exception thrown by f leaves the call once the loop has stopped.
template <class F>
void parallel_for(std::int64_t n, bool parallel, F&& f) {
  const std::int64_t threads = parallel ? std::min({n, concurrency(), detail::shared_loop<F>::most_threads}) : 1;
  if (threads <= 1) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  detail::worker_places::all().loop_starts();
  detail::shared_loop<F> loop(n, threads, f);
  detail::loop_order order;
  order.begin();
  const detail::at_end end{[&order] { order.end(); }};
  tbb::parallel_for(
      tbb::blocked_range<std::int64_t>(0, threads),
      [&loop, &order, watching = observer](const tbb::blocked_range<std::int64_t>& range) {
        order.thread_begins();
        detail::worker_places::thread_works();
        const detail::at_end thread_end{[&order] { order.thread_ends(); }};
        const std::int64_t begin = watching != nullptr ? watching->now() : 0;
        for (std::int64_t t = range.begin(); t != range.end(); ++t) loop(t);
        if (watching != nullptr) watching->worked(begin);
      },
      tbb::static_partitioner());
}

}  // namespace tessera::kernels
