// SPDX-License-Identifier: Apache-2.0
// How much of a row group's scores the mask shows to a block of rows.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/fused_call.hpp>
#include <tessera/runtime/step_function.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace tessera::runtime {

/// Columns that a mask shows: all before `clear` to every row of a block, none from `seen` on to any.
struct shown_columns {
  std::int64_t clear = 0;
  std::int64_t seen = 0;
};

/// What is known by now of the first blocks that read the mask, for others that read the same part of it.
class known_columns {
 public:
  static constexpr std::int64_t blocks = 256;

  /// What find() returns, which is called where nobody else has done so.
  template <class Find>
  shown_columns of(std::int64_t block, const Find& find) {
    if (block >= blocks) return find();
    std::atomic<std::uint64_t>& known = known_[static_cast<std::size_t>(block)];
    std::uint64_t both = known.load(std::memory_order_relaxed);
    if (both == 0) {
      const shown_columns found = find();
      both = static_cast<std::uint64_t>(found.seen) << 32 | static_cast<std::uint64_t>(found.clear);
      known.store(both, std::memory_order_relaxed);
    }
    return {static_cast<std::int64_t>(both & 0xffffffff), static_cast<std::int64_t>(both >> 32)};
  }

 private:
  std::array<std::atomic<std::uint64_t>, blocks> known_{};  ///< 0 where nothing is known; `seen` is never 0
};

/// How many columns of a group's scores the mask shows to all rows of a block, rounded down, and to some, rounded up.
template <class Executor>
struct seen_columns {
  const Executor& run_on;
  const graph::row_group& group;

  shown_columns operator()(const row_block& rows) const {
    constexpr std::int64_t multiple = 64;
    const std::int64_t columns = group.columns;
    kernels::fused_call call;
    run_on.prepare_call(step(), rows.device, call);
    const int place = group.mask - step().first;
    shown_columns shown{columns, 0};
    for (std::int64_t row = rows.first; row < rows.last && (shown.clear > 0 || shown.seen < columns); ++row) {
      const std::int64_t line = row * columns / call.columns();
      std::int64_t offset = row * columns % call.columns();
      for (std::int64_t d = call.rank - 2, rest = line; d >= 0; rest /= call.extents[d--])
        offset += rest % call.extents[d] * call.strides[place][d];
      const auto* const mask = static_cast<const unsigned char*>(call.data[place]) + offset;
      shown.clear = first_hidden(mask, shown.clear);
      shown.seen = last_shown(mask, std::max(shown.seen, shown.clear), columns);
    }
    return {shown.clear / multiple * multiple,
            std::min(columns, (std::max<std::int64_t>(shown.seen, 1) + multiple - 1) / multiple * multiple)};
  }

  /// Whether every batch of rows has the mask of the first.
  bool repeats() const {
    const graph::step& s = step();
    const graph::access& mask = run_on.program_.accesses[static_cast<std::size_t>(group.mask)];
    std::int64_t inside = s.sizes[s.rank - 1] / group.columns;
    int d = s.rank - 2;
    while (d >= 0 && inside < group.batch) inside *= s.sizes[d--];
    bool same = inside == group.batch;
    for (; d >= 0; --d) same &= mask.strides[d] == 0;
    return same;
  }

 private:
  static constexpr std::int64_t together = 64;

  /// The step that masks.
  const graph::step& step() const { return run_on.program_.steps[static_cast<std::size_t>(group.masking_step)]; }

  /// The first place in [0, to) that is 0, or one before it that is neither 0 nor 1, or `to`.
  static std::int64_t first_hidden(const unsigned char* shown, std::int64_t to) {
    constexpr std::uint64_t ones = 0x0101010101010101;
    std::int64_t at = 0;
    for (std::uint64_t words[together / 8]; to - at >= together; at += together) {
      std::memcpy(words, shown + at, sizeof words);
      std::uint64_t other = 0;
      for (const std::uint64_t word : words) other |= word ^ ones;
      if (other != 0) break;
    }
    while (at < to && shown[at] == 1) ++at;
    return at;
  }

  /// One more than the last place in [from, to) that is not 0, or `from`.
  static std::int64_t last_shown(const unsigned char* shown, std::int64_t from, std::int64_t to) {
    for (std::uint64_t words[together / 8]; to - from >= together; to -= together) {
      std::memcpy(words, shown + to - together, sizeof words);
      std::uint64_t any = 0;
      for (const std::uint64_t word : words) any |= word;
      if (any != 0) break;
    }
    while (to > from && shown[to - 1] == 0) --to;
    return to;
  }
};

}  // namespace tessera::runtime
