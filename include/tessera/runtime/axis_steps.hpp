// SPDX-License-Identifier: Apache-2.0
// Runs steps along an axis: sums so far, recurrences, orders, and softmax with its kin.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/argsort.hpp>
#include <tessera/kernels/cumulative.hpp>
#include <tessera/kernels/softmax.hpp>

#include <cstdint>

namespace tessera::runtime {

/// One such step of an executor, on elements of type T.
template <class Executor, class T>
struct axis_runner {
  Executor& run_on;
  const graph::step& s;

  void cumulative() const {
    for_each_walk([&](std::int64_t d, bool parallel) {
      kernels::cumulative(static_cast<kernels::cumulative_kind>(s.sizes[3]), walk(),
                          reinterpret_cast<const T*>(run_on.block(s.first, d)),
                          reinterpret_cast<T*>(run_on.block(s.first + 1, d)), parallel);
    });
  }

  void recurrence() const {
    for_each_walk([&](std::int64_t d, bool parallel) {
      kernels::recurrence(walk(), s.sizes[3] != 0, reinterpret_cast<const T*>(run_on.block(s.first, d)),
                          reinterpret_cast<const T*>(run_on.block(s.first + 1, d)),
                          reinterpret_cast<T*>(run_on.block(s.first + 2, d)), parallel);
    });
  }

  void argsort() const {
    for_each_walk([&](std::int64_t d, bool parallel) {
      kernels::argsort({s.sizes[0], s.sizes[1], s.sizes[2], s.sizes[3], s.sizes[4] != 0},
                       reinterpret_cast<const T*>(run_on.block(s.first, d)),
                       reinterpret_cast<std::int32_t*>(run_on.block(s.first + 1, d)), parallel);
    });
  }

  template <graph::step_kind Kind>
  void rows() const {
    const std::int64_t size = s.sizes[0] * s.sizes[1];
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small,
                          [&](std::int64_t d) { normalise<Kind>(d, size > Executor::small); });
  }

 private:
  kernels::axis_walk walk() const { return {s.sizes[0], s.sizes[1], s.sizes[2], s.sizes[4] != 0}; }

  /// Calls f(device, parallel) for every shard of a step along an axis.
  template <class F>
  void for_each_walk(F&& f) const {
    const std::int64_t size = s.sizes[0] * s.sizes[1] * s.sizes[2];
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small,
                          [&](std::int64_t d) { f(d, size > Executor::small); });
  }

  template <graph::step_kind Kind>
  void normalise(std::int64_t d, bool parallel) const {
    using graph::step_kind;
    const auto* x = reinterpret_cast<const T*>(run_on.block(s.first, d));
    const auto* y = reinterpret_cast<const T*>(run_on.block(s.first + 1, d));
    auto* out = reinterpret_cast<T*>(run_on.block(s.first + s.sources, d));
    if constexpr (Kind == step_kind::softmax) kernels::softmax(x, out, s.sizes[0], s.sizes[1], parallel);
    else if constexpr (Kind == step_kind::log_softmax) kernels::log_softmax(x, out, s.sizes[0], s.sizes[1], parallel);
    else if constexpr (Kind == step_kind::softmax_grad)
      kernels::softmax_backward(x, y, out, s.sizes[0], s.sizes[1], parallel);
    else kernels::log_softmax_backward(x, y, out, s.sizes[0], s.sizes[1], parallel);
  }
};

}  // namespace tessera::runtime
