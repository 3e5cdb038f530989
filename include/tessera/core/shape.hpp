// SPDX-License-Identifier: Apache-2.0
// The extents of a tensor as a type.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

/// Dimensions a tensor may have at most.
inline constexpr int max_rank = 8;

/// Row-major extents; `shape<>` is a scalar.
template <std::int64_t... Extents>
struct shape {
  static constexpr int rank = sizeof...(Extents);
  static constexpr std::int64_t size = (std::int64_t{1} * ... * Extents);
  static constexpr std::array<std::int64_t, sizeof...(Extents)> extents{Extents...};
};

}  // namespace tessera
