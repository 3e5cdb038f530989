// SPDX-License-Identifier: Apache-2.0
// How much of a row group's scores the mask shows to a block of rows.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/fused_call.hpp>
#include <tessera/runtime/step_function.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tessera::runtime {

/// How many columns of a group's scores the mask shows to some row of a block, rounded up.
template <class Executor>
struct seen_columns {
  const Executor& run_on;
  const graph::step& s;  ///< the step that masks
  const row_block& rows;

  std::int64_t operator()() const {
    constexpr std::int64_t multiple = 64;
    const std::int64_t columns = rows.group.columns;
    kernels::fused_call call;
    run_on.prepare_call(s, rows.device, call);
    const int place = rows.group.mask - s.first;
    std::int64_t seen = 0;
    for (std::int64_t row = rows.first; row < rows.last && seen < columns; ++row) {
      const std::int64_t line = row * columns / call.columns();
      std::int64_t offset = row * columns % call.columns();
      for (std::int64_t d = call.rank - 2, rest = line; d >= 0; rest /= call.extents[d--])
        offset += rest % call.extents[d] * call.strides[place][d];
      const auto* const shown = static_cast<const unsigned char*>(call.data[place]) + offset;
      seen = last_shown(shown, seen, columns);
    }
    return std::min(columns, (std::max<std::int64_t>(seen, 1) + multiple - 1) / multiple * multiple);
  }

 private:
  /// One more than the last place in [from, to) that is not 0, or `from`.
  static std::int64_t last_shown(const unsigned char* shown, std::int64_t from, std::int64_t to) {
    constexpr std::int64_t step = 64;
    for (std::uint64_t words[step / 8]; to - from >= step; to -= step) {
      std::memcpy(words, shown + to - step, sizeof words);
      std::uint64_t any = 0;
      for (const std::uint64_t word : words) any |= word;
      if (any != 0) break;
    }
    while (to > from && shown[to - 1] == 0) --to;
    return to;
  }
};

}  // namespace tessera::runtime
