// SPDX-License-Identifier: Apache-2.0
// How many threads work on steps.
#pragma once

#include <tessera/core/error.hpp>

#include <tbb/global_control.h>

#include <cstddef>
#include <string>

namespace tessera {

/// While it lives, at most `n` threads of this process work on steps, the calling one among them; of several limits the
/// lowest holds. Bits do not depend on it. Steps run in the arena that calls them, so a program that uses TBB itself
/// shares its threads with them; a `tbb::task_arena` round a call limits that call alone.
///
/// Raises value_error for fewer than 1.
class max_threads {
 public:
  explicit max_threads(int n) : limit_(tbb::global_control::max_allowed_parallelism, checked(n)) {}

  /// The limit that holds now.
  static int now() {
    return static_cast<int>(tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  }

 private:
  static std::size_t checked(int n) {
    if (n < 1) throw value_error("max_threads: " + std::to_string(n) + " threads asked for; it must be at least 1");
    return static_cast<std::size_t>(n);
  }

  tbb::global_control limit_;
};

}  // namespace tessera
