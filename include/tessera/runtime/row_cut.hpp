// SPDX-License-Identifier: Apache-2.0
// How the rows of a row group are cut into blocks, and the memory of a block.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/detail/workspace.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/softmax.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tessera::runtime {

/// What a block of rows hands from step to step should stay within this: half of a second-level cache.
inline constexpr std::int64_t row_block_bytes = std::int64_t{1} << 19;
inline constexpr std::int64_t fewest_block_rows = 8;

/// Memory of this thread for the blocks of row groups, at least `bytes` long; kept until the thread ends.
inline std::byte* block_memory(std::int64_t bytes) {
  thread_local kernels::detail::scratch_memory memory;
  thread_local std::int64_t size = 0;
  if (size < bytes) {
    constexpr auto page = static_cast<std::int64_t>(kernels::detail::workspace_bytes);
    const std::int64_t rounded = (bytes + page - 1) / page * page;
    memory.reset();
    size = 0;
    memory = kernels::detail::make_scratch(static_cast<std::size_t>(rounded));
    size = rounded;
  }
  return static_cast<std::byte*>(memory.get());
}

/// How a group's rows are cut: every batch into `parts` blocks. Where products sum over rows, blocks are what they sum
/// at once; where reductions fold rows, whole leaves: no bit depends on the grouping.
struct row_cut {
  static constexpr std::int64_t most_pieces = 4;

  std::int64_t batch;
  std::int64_t parts;
  std::int64_t room;  ///< rows of the longest block
  bool whole_leaves;
  bool sums;

  explicit row_cut(const graph::row_group& group) : batch(group.batch), whole_leaves(group.folds), sums(group.sums) {
    constexpr std::int64_t leaf = graph::rows_in_leaf;
    const std::int64_t fitting = std::clamp(row_block_bytes / std::max<std::int64_t>(group.row_bytes, 1),
                                            whole_leaves ? leaf : fewest_block_rows, most_rows(group));
    using kernels::detail::ceil_div;
    if (sums) parts = kernels::detail::depth_blocks(batch);
    else parts = ceil_div(batch, whole_leaves ? fitting / leaf * leaf : fitting);
    room = whole_leaves ? fitting / leaf * leaf : sums ? start(1) : ceil_div(batch, parts);
  }

  /// Lower blocks see fewer of the columns that a causal mask shows; in too low ones, products pack too much for a row.
  static std::int64_t most_rows(const graph::row_group& group) {
    if (group.columns == 0) return kernels::most_masked_rows;
    return std::clamp<std::int64_t>(group.columns / 8, 64, kernels::most_masked_rows);
  }

  /// Of how many pieces a block of so many rows is, each with columns of its own.
  static std::int64_t pieces(const graph::row_group& group, std::int64_t rows) {
    return group.columns == 0 ? 1 : std::min(most_pieces, kernels::detail::ceil_div(rows, most_rows(group)));
  }

  /// The first row of part `i` of a batch.
  std::int64_t start(std::int64_t i) const {
    if (sums) return i < parts ? kernels::detail::depth_block(batch, i).start : batch;
    return whole_leaves ? std::min(batch, i * room) : kernels::detail::part(batch, parts, i);
  }
};

}  // namespace tessera::runtime
