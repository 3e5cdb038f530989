// SPDX-License-Identifier: Apache-2.0
// Runs steps that refuse labels and indices out of range.
#pragma once

#include <tessera/core/error.hpp>
#include <tessera/core/shards.hpp>
#include <tessera/graph/program.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace tessera::runtime {

/// One such step of an executor, on elements of type T.
template <class Executor, class T>
struct range_checker {
  Executor& run_on;
  const graph::step& s;

  void operator()() const {
    run_on.for_each_shard(s, false, [&](std::int64_t d) {
      const auto* labels = reinterpret_cast<const T*>(run_on.block(s.first, d));
      const bool from_end = s.sizes[0] < 0;
      const std::int64_t bound = from_end ? -s.sizes[0] : s.sizes[0];
      const std::int64_t lowest = from_end && std::is_signed_v<T> ? -bound : 0;
      for (std::int64_t j = 0; j < s.sizes[1]; ++j)
        if (static_cast<std::int64_t>(labels[j]) < lowest || static_cast<std::int64_t>(labels[j]) >= bound)
          throw index_error((from_end ? "take or at: index " : "softmax_cross_entropy: label ") +
                            std::to_string(labels[j]) + " at position " + position(d, j) + " is outside [" +
                            std::to_string(lowest) + ", " + std::to_string(bound) + ")");
    });
  }

 private:
  /// The global position of element `j` of a device's block: `3` or `(3, 1)`.
  std::string position(std::int64_t device, std::int64_t j) const {
    const graph::access& a = run_on.program_.accesses[static_cast<std::size_t>(s.first)];
    std::string text;
    for (int d = s.rank - 1; d >= 0; --d) {
      const auto axes = static_cast<axis_list>(s.sizes[2 + d]);
      const std::int64_t at = block_index(device, axes, run_on.mesh_) * a.strides[d] + j % a.strides[d];
      j /= a.strides[d];
      text = std::to_string(at) + (text.empty() ? "" : ", ") + text;
    }
    return s.rank == 1 ? text : "(" + text + ")";
  }
};

}  // namespace tessera::runtime
