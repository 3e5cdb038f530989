// SPDX-License-Identifier: Apache-2.0
// Who sends to whom along mesh axes, in two words, so that a node and a step can hold it.
#pragma once

#include <cstdint>

namespace tessera::graph {

/// Places along an axis send to places, each at most once. A table has five bits a receiver (the sender + 1, 0 for
/// none); a ring sends from i to (i + offset) mod n, a shift from i to i + offset where that exists.
struct permutation {
  enum class form : std::uint8_t { table, ring, shift };

  std::uint64_t words[2]{};

  /// Places that a table has room for.
  static constexpr int max_places = 24;

  static constexpr permutation regular(form kind, std::int64_t offset) {
    return {{static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(kind) << 60}};
  }
  constexpr form kind() const { return static_cast<form>(words[1] >> 60); }

  constexpr void connect(int from, int to) {
    words[to / 12] |= static_cast<std::uint64_t>(from + 1) << (5 * (to % 12));
  }

  /// The place that sends to `place` of `n`, or -1.
  constexpr std::int64_t source(std::int64_t place, std::int64_t n) const {
    if (kind() == form::table) return static_cast<std::int64_t>((words[place / 12] >> (5 * (place % 12))) & 31U) - 1;
    const std::int64_t from = place - static_cast<std::int64_t>(words[0]);
    if (kind() == form::ring) return ((from % n) + n) % n;
    return from >= 0 && from < n ? from : -1;
  }

  /// Every receiver sends back.
  constexpr permutation inverse() const {
    if (kind() != form::table) return regular(kind(), -static_cast<std::int64_t>(words[0]));
    permutation back;
    for (int to = 0; to < max_places; ++to)
      if (const auto from = static_cast<int>(source(to, max_places)); from >= 0) back.connect(to, from);
    return back;
  }
};

}  // namespace tessera::graph
