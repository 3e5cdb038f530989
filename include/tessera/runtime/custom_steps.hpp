// SPDX-License-Identifier: Apache-2.0
// Runs operations from outside the library.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/custom.hpp>

#include <bit>
#include <cstdint>
#include <span>

namespace tessera::runtime {

/// One such step of an executor, on the blocks of each distinct shard.
template <class Executor>
struct custom_runner {
  Executor& run_on;
  const graph::step& s;

  void operator()() const {
    const custom_function kernel = kernels::find_custom_operation(std::bit_cast<std::uint64_t>(s.sizes[0]));
    const auto block_of_access = [&](int a, std::int64_t device) {
      const graph::access& access = run_on.program_.accesses[static_cast<std::size_t>(a)];
      custom_block made{run_on.block(a, device), run_on.type_of(a), 0, access.strides};
      while (made.rank < max_rank && access.strides[made.rank] >= 0) ++made.rank;
      return made;
    };
    run_on.for_each_shard(s, run_on.shards_of(s) * s.flops > Executor::small, [&](std::int64_t d) {
      custom_block inputs[3];
      for (int i = 0; i < s.sources; ++i) inputs[i] = block_of_access(s.first + i, d);
      kernel({std::span(inputs, static_cast<std::size_t>(s.sources)), block_of_access(s.first + s.sources, d),
              s.flops > Executor::small});
    });
  }
};

}  // namespace tessera::runtime
