// SPDX-License-Identifier: Apache-2.0
// The option of operations that walk along a dimension.
#pragma once

namespace tessera {

/// From the last slice or element to the first; results lie where their operands lie.
struct reverse_t {};
inline constexpr reverse_t reverse{};

}  // namespace tessera
