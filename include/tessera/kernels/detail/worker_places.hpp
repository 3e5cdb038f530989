// SPDX-License-Identifier: Apache-2.0
// Keeps TBB's worker threads off the processor of the thread that gives them work.
#pragma once

#include <atomic>
#include <chrono>

#include <tbb/task_arena.h>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>
#endif

namespace tessera::kernels::detail {

/// Whether this thread is one of those that its arena adds to the calling one.
inline bool is_added_thread() {
  const int index = tbb::this_task_arena::current_thread_index();
  return index != tbb::task_arena::not_initialized && index > 0;
}

#if defined(__linux__)

/// Which processors worker threads may run on. Linux often wakes a thread on the processor of the one that wakes it,
/// though others are idle; there it waits for a tick or two of 4 ms, which is longer than most loops. So each worker
/// may use the processors it had, but for the caller's, as long as another is left.
class worker_places {
 public:
  /// The one of this process. Never destroyed, since workers may end after everything else.
  static worker_places& all() {
    static worker_places& places = *new worker_places;
    return places;
  }

  /// Called by any thread that works on a loop.
  static void thread_works() {
    if (is_added_thread()) {
      [[maybe_unused]] thread_local const registration added;
    }
  }

  /// Called by the thread that starts a loop.
  void loop_starts() {
    const int here = sched_getcpu();
    if (here != kept_free_.load(std::memory_order_relaxed) && !is_added_thread()) keep_free(here);
  }

 private:
  using clock = std::chrono::steady_clock;

  struct worker {
    pid_t id;
    cpu_set_t allowed;
  };

  /// A worker, for as long as its thread lives.
  class registration {
   public:
    registration() : id_(gettid()) {
      if (id_ != getpid()) all().add(id_);
    }
    ~registration() { all().remove(id_); }
    registration(const registration&) = delete;
    registration& operator=(const registration&) = delete;

   private:
    pid_t id_;
  };

  void add(pid_t id) {
    worker added{id, {}};
    if (sched_getaffinity(id, sizeof added.allowed, &added.allowed) != 0) return;
    const std::lock_guard lock(mutex_);
    workers_.push_back(added);
    place(added);
  }

  void remove(pid_t id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(workers_, [&](const worker& w) { return w.id == id; });
  }

  /// Two callers that take turns do not send workers to and fro at each loop.
  void keep_free(int processor) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto now = clock::now();
    if (!lock || now - moved_ < std::chrono::milliseconds(1)) return;
    moved_ = now;
    kept_free_.store(processor, std::memory_order_relaxed);
    for (const worker& w : workers_) place(w);
  }

  void place(const worker& w) const {
    cpu_set_t rest = w.allowed;
    if (const int free = kept_free_.load(std::memory_order_relaxed); free >= 0 && free < CPU_SETSIZE)
      CPU_CLR(static_cast<std::size_t>(free), &rest);
    sched_setaffinity(w.id, sizeof rest, CPU_COUNT(&rest) > 0 ? &rest : &w.allowed);
  }

  std::atomic<int> kept_free_{-1};
  std::mutex mutex_;  ///< of what follows
  std::vector<worker> workers_;
  clock::time_point moved_{};
};

#else

/// Elsewhere threads stay where the system has them.
struct worker_places {
  static worker_places all() { return {}; }
  static void thread_works() {}
  void loop_starts() {}
};

#endif

}  // namespace tessera::kernels::detail
