// SPDX-License-Identifier: Apache-2.0
// Where blocks of memory may start: one rule for arrays, arenas and plans, which have to agree.
#pragma once

#include <cstdint>

namespace tessera {

/// Blocks start at multiples of this many bytes, a cache line and the widest vector.
inline constexpr std::int64_t block_alignment = 64;

/// The bytes from the start of a block of `bytes` to the start of the next one.
constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + block_alignment - 1) / block_alignment * block_alignment;
}

}  // namespace tessera
