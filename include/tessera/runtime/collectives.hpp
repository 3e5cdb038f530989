// SPDX-License-Identifier: Apache-2.0
// Collectives among devices that share a process: each reads the blocks of a group and writes the distinct results.
#pragma once

#include <tessera/core/error.hpp>
#include <tessera/core/shards.hpp>
#include <tessera/graph/permutation.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/kernels/reduce.hpp>

#include <array>
#include <cstring>
#include <string>

namespace tessera::runtime {

/// Blocks that one in-process collective combines at most.
inline constexpr std::int64_t max_group = 256;

/// One collective over one pair of buffers: `Source(device)` is a device's operand block, `Target(device)` its
/// result's. Sums are taken in an order that only the axes determine, so they do not depend on threads.
template <class T, class Source, class Target>
struct collective {
  const graph::step& s;
  const mesh_value& mesh;
  const graph::buffer& target;
  Source source_block;
  Target target_block;

  std::int64_t group() const { return devices_along(s.axes, mesh); }
  std::int64_t elements() const { return target.bytes / static_cast<std::int64_t>(sizeof(T)); }

  void operator()() const {
    if (group() > max_group)
      throw value_error("executor: a collective over " + std::to_string(group()) + " devices in one process; at most " +
                        std::to_string(max_group));
    const std::int64_t shards = devices_in(target.varying, mesh);
    const bool parallel = shards * elements() * group() > 16384;
    kernels::parallel_for(shards, parallel && shards > 1, [&](std::int64_t shard) {
      const std::int64_t device = device_of_shard(shard, target.varying, mesh);
      switch (s.kind) {
        case graph::step_kind::all_reduce: return all_reduce(device, parallel);
        case graph::step_kind::all_gather: return all_gather(device);
        case graph::step_kind::all_to_all: return all_to_all(device);
        case graph::step_kind::collective_permute: return permute(device);
        default: return reduce_scatter(device, parallel);
      }
    });
  }

 private:
  using members = std::array<const T*, static_cast<std::size_t>(max_group)>;

  members operands(std::int64_t device, std::int64_t offset) const {
    members from;
    for (std::int64_t i = 0; i < group(); ++i)
      from[static_cast<std::size_t>(i)] =
          reinterpret_cast<const T*>(source_block(device_at(device, s.axes, i, mesh))) + offset;
    return from;
  }

  void all_reduce(std::int64_t device, bool parallel) const {
    const members from = operands(device, 0);
    kernels::add_shards(static_cast<kernels::reduce_kind>(s.sizes[0]), reinterpret_cast<T*>(target_block(device)),
                        from.data(), static_cast<int>(group()), elements(), parallel);
  }

  /// Sizes: outer, block, inner of an operand; the result has the group's blocks side by side.
  void all_gather(std::int64_t device) const {
    const std::int64_t run = s.sizes[1] * s.sizes[2];
    auto* to = reinterpret_cast<T*>(target_block(device));
    for (std::int64_t i = 0; i < group(); ++i) {
      const auto* from = reinterpret_cast<const T*>(source_block(device_at(device, s.axes, i, mesh)));
      for (std::int64_t outer = 0; outer < s.sizes[0]; ++outer)
        std::memcpy(to + (outer * group() + i) * run, from + outer * run, static_cast<std::size_t>(run) * sizeof(T));
    }
  }

  /// Every device cuts its operand along one dimension into a piece for each member of the group, and joins what it is
  /// sent along another one, in the order of the members.
  void all_to_all(std::int64_t device) const {
    const std::int64_t n = group();
    const bool split_first = s.sizes[5] != 0;
    const std::int64_t first = split_first ? s.sizes[1] / n : s.sizes[1];
    const std::int64_t second = split_first ? s.sizes[3] : s.sizes[3] / n;
    const std::int64_t middle = s.sizes[2];
    const std::int64_t inner = s.sizes[4];
    const std::int64_t mine = block_index(device, s.axes, mesh);
    auto* to = reinterpret_cast<T*>(target_block(device));
    for (std::int64_t i = 0; i < n; ++i) {
      const auto* from = reinterpret_cast<const T*>(source_block(device_at(device, s.axes, i, mesh)));
      for (std::int64_t o = 0; o < s.sizes[0]; ++o)
        for (std::int64_t f = 0; f < first; ++f)
          for (std::int64_t m = 0; m < middle; ++m) {
            const std::int64_t read = split_first ? ((o * s.sizes[1] + mine * first + f) * middle + m) * second
                                                  : ((o * first + f) * middle + m) * s.sizes[3] + mine * second;
            const std::int64_t written = split_first ? (((o * first + f) * middle + m) * n + i) * second
                                                     : (((o * n + i) * first + f) * middle + m) * second;
            std::memcpy(to + written * inner, from + read * inner,
                        static_cast<std::size_t>(second * inner) * sizeof(T));
          }
    }
  }

  /// Which place along `axes` sends to a device: this one's along the axes in `sizes[0]`, or what a permutation says.
  std::int64_t sender(std::int64_t device) const {
    if (s.sizes[0] != 0) return block_index(device, static_cast<axis_list>(s.sizes[0]), mesh);
    const graph::permutation to{{static_cast<std::uint64_t>(s.sizes[1]), static_cast<std::uint64_t>(s.sizes[2])}};
    return to.source(block_index(device, s.axes, mesh), group());
  }

  /// The block of the device that sends to this one, or zeros.
  void permute(std::int64_t device) const {
    const std::int64_t place = sender(device);
    if (place < 0) {
      std::memset(target_block(device), 0, static_cast<std::size_t>(target.bytes));
      return;
    }
    std::memcpy(target_block(device), source_block(device_at(device, s.axes, place, mesh)),
                static_cast<std::size_t>(target.bytes));
  }

  /// Sizes: outer, block, inner of the result.
  void reduce_scatter(std::int64_t device, bool parallel) const {
    const std::int64_t run = s.sizes[1] * s.sizes[2];
    const std::int64_t mine = block_index(device, s.axes, mesh);
    auto* to = reinterpret_cast<T*>(target_block(device));
    for (std::int64_t outer = 0; outer < s.sizes[0]; ++outer) {
      const members from = operands(device, (outer * group() + mine) * run);
      kernels::add_shards(static_cast<kernels::reduce_kind>(s.sizes[3]), to + outer * run, from.data(),
                          static_cast<int>(group()), run, parallel);
    }
  }
};

/// One such step of an executor, on elements of type T.
template <class Executor, class T>
struct collective_runner {
  Executor& run_on;
  const graph::step& s;

  void operator()() const {
    ++run_on.runs_of_step_;
    for (int pair = 0; pair < s.results; ++pair) {
      const int from = s.first + pair;
      const int to = s.first + s.sources + pair;
      const auto& target =
          run_on.program_
              .buffers[static_cast<std::size_t>(run_on.program_.accesses[static_cast<std::size_t>(to)].buffer)];
      const auto source_block = [&](std::int64_t d) { return static_cast<const std::byte*>(run_on.block(from, d)); };
      const auto target_block = [&](std::int64_t d) { return run_on.block(to, d); };
      if (run_on.program_
              .buffers[static_cast<std::size_t>(run_on.program_.accesses[static_cast<std::size_t>(from)].buffer)]
              .summed != 0) {
        copy_sums(from, to, target);
        continue;
      }
      const collective<T, decltype(source_block), decltype(target_block)> run{s, run_on.mesh_, target, source_block,
                                                                              target_block};
      run();
    }
  }

 private:
  /// An all-reduce whose operands were summed as they were made has only to be where its result belongs.
  void copy_sums(int from, int to, const graph::buffer& target) const {
    for (std::int64_t i = 0; i < devices_in(target.varying, run_on.mesh_); ++i) {
      const std::int64_t home = device_of_shard(i, target.varying, run_on.mesh_);
      if (run_on.block(to, home) != run_on.block(from, home))
        std::memcpy(run_on.block(to, home), run_on.block(from, home), static_cast<std::size_t>(target.bytes));
    }
  }
};

}  // namespace tessera::runtime
