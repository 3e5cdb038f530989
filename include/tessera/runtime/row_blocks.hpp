// SPDX-License-Identifier: Apache-2.0
// Runs row groups: all of their steps on one block of rows after the other.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/runtime/row_cut.hpp>
#include <tessera/runtime/row_steps.hpp>
#include <tessera/runtime/seen_columns.hpp>
#include <tessera/runtime/step_function.hpp>

#include <cstdint>

namespace tessera::runtime {

/// A group on all of its shards: all steps on one block of rows after the other.
template <class Executor>
struct group_runner {
  const Executor& run_on;
  const graph::row_group& group;
  std::int64_t shards;

  void operator()() const {
    if (group.line) {
      finish(group.first + 1);
      return;
    }
    run_blocks();
    for (int i = group.first; group.folds && i < group.first + group.count; ++i)
      if (step(i).kind == graph::step_kind::reduce && step(i).sums_rows) finish(i);
  }

 private:
  /// Groups of fewer bytes that their steps hand to each other are not worth a second thread.
  static constexpr std::int64_t worth_threads = std::int64_t{1} << 16;

  const graph::step& step(int i) const { return run_on.program_.steps[static_cast<std::size_t>(i)]; }
  std::int64_t device(std::int64_t shard) const { return run_on.device(step(group.first), shard); }
  void run(int i, row_block& rows) const {
    (run_on.*run_on.functions_[static_cast<std::size_t>(i)].rows)(step(i), rows);
  }

  /// Blocks of a batch in which products sum over rows are one task.
  void run_blocks() const {
    const row_cut cut(group);
    const std::int64_t together = group.sums ? cut.parts : 1;
    const std::int64_t tasks = group.rows / group.batch * cut.parts / together;
    kernels::parallel_for(
        shards * tasks, shards * group.rows * group.row_bytes > worth_threads, [&](std::int64_t task) {
          row_block rows{group, device(task / tasks), cut.room, block_memory(cut.room * group.row_bytes)};
          for (std::int64_t i = task % tasks * together; i < (task % tasks + 1) * together; ++i) {
            const std::int64_t start = i / cut.parts * group.batch;
            rows.first = start + cut.start(i % cut.parts);
            rows.last = start + cut.start(i % cut.parts + 1);
            run_block(rows);
          }
        });
  }

  /// All steps on one block, once more with all columns if some that were left out count.
  void run_block(row_block& rows) const {
    rows.seen = group.columns;
    if (group.columns > 0) rows.seen = seen_columns<Executor>{run_on, step(group.masking_step), rows}();
    for (int i = group.first; i < group.first + group.count; ++i)
      if (step(i).kind == graph::step_kind::dot) row_runner<Executor>{run_on, step(i), rows}.ask_ahead();
    for (int i = group.first; i < group.first + group.count; ++i) {
      run(i, rows);
      if (!rows.again) continue;
      rows.again = false;
      rows.seen = group.columns;
      i = group.first - 1;
    }
  }

  /// What step `i` does once for all blocks.
  void finish(int i) const {
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      row_block rows{group, device(shard), 0, nullptr};
      rows.finish = true;
      run(i, rows);
    }
  }
};

}  // namespace tessera::runtime
