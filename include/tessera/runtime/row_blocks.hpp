// SPDX-License-Identifier: Apache-2.0
// Runs row groups: all of their steps on one block of rows after the other.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/runtime/row_cut.hpp>
#include <tessera/runtime/row_steps.hpp>
#include <tessera/runtime/seen_columns.hpp>
#include <tessera/runtime/step_function.hpp>

#include <algorithm>
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
    const seen_columns<Executor> mask{run_on, group};
    const bool repeats = group.columns > 0 && mask.repeats();
    known_columns known;
    std::int64_t bytes = cut.room * group.row_bytes;
    for (int i = group.first; i < group.first + group.count; ++i) bytes += turned_sum_bytes(run_on.program_, step(i));
    kernels::parallel_for(
        shards * tasks, shards * group.rows * group.row_bytes > worth_threads, [&](std::int64_t task) {
          row_block rows{group, device(task / tasks), cut.room, block_memory(bytes)};
          for (std::int64_t i = task % tasks * together; i < (task % tasks + 1) * together; ++i) {
            const std::int64_t start = i / cut.parts * group.batch, block = i % cut.parts;
            row_pieces pieces(group, start + cut.start(block), start + cut.start(block + 1));
            for (std::int64_t piece = 0; piece < pieces.count && group.columns > 0; ++piece) {
              pieces.take(rows, piece);
              const std::int64_t place = (task / tasks * cut.parts + block) * row_cut::most_pieces + piece;
              pieces.shown[piece] = known.of(repeats ? place : known.blocks, [&] { return mask(rows); });
            }
            run_block(rows, pieces);
          }
        });
  }

  /// The rows of a block, in pieces of which each has columns of its own.
  struct row_pieces {
    const graph::row_group& group;
    std::int64_t first, last, count;
    shown_columns shown[row_cut::most_pieces]{};

    row_pieces(const graph::row_group& of, std::int64_t from, std::int64_t to)
        : group(of), first(from), last(to), count(row_cut::pieces(of, to - from)) {}

    void take(row_block& rows, std::int64_t piece) const {
      rows.base = first;
      rows.first = first + kernels::detail::part(last - first, count, piece);
      rows.last = first + kernels::detail::part(last - first, count, piece + 1);
      rows.clear = shown[piece].clear, rows.seen = shown[piece].seen;
    }
    /// All of them, with the columns that some has.
    void take_all(row_block& rows) const {
      rows.base = rows.first = first, rows.last = last;
      rows.clear = 0, rows.seen = seen();
    }
    std::int64_t seen() const {
      std::int64_t most = 0;
      for (std::int64_t piece = 0; piece < count; ++piece) most = std::max(most, shown[piece].seen);
      return most;
    }
    void see_all() {
      for (std::int64_t piece = 0; piece < count; ++piece) shown[piece].seen = group.columns;
    }
  };

  /// All steps on one block, once more with all columns if some that were left out count.
  void run_block(row_block& rows, row_pieces& pieces) const {
    pieces.take_all(rows);
    for (int i = group.first; i < group.first + group.count; ++i)
      if (step(i).kind == graph::step_kind::dot) row_runner<Executor>{run_on, step(i), rows}.ask_ahead();
    for (int i = group.first; i < group.first + group.count; ++i) {
      const bool sums = step(i).sums_rows;
      for (std::int64_t piece = 0; piece < pieces.count && !rows.again; ++piece) {
        pieces.take(rows, piece);
        if (!sums) run(i, rows);
        else if (rows.seen < pieces.seen()) row_runner<Executor>{run_on, step(i), rows}.put_zeros(pieces.seen());
      }
      if (sums) {
        pieces.take_all(rows);
        run(i, rows);
      }
      if (!rows.again) continue;
      rows.again = false;
      pieces.see_all();
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
