// SPDX-License-Identifier: Apache-2.0
// The sizes of the problem.
#pragma once

#include <cstdint>

namespace fashion {

inline constexpr std::int64_t batch = 256;
inline constexpr std::int64_t pixels = 28 * 28;
inline constexpr std::int64_t classes = 10;

}  // namespace fashion
