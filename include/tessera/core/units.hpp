// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes: powers of 1024 for memory, powers of 1000 for what data sheets and networks count.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr std::int64_t KiB = std::int64_t{1} << 10;
inline constexpr std::int64_t MiB = std::int64_t{1} << 20;
inline constexpr std::int64_t GiB = std::int64_t{1} << 30;
inline constexpr std::int64_t TiB = std::int64_t{1} << 40;

inline constexpr std::int64_t KB = 1'000;
inline constexpr std::int64_t MB = 1'000'000;
inline constexpr std::int64_t GB = 1'000'000'000;
inline constexpr std::int64_t TB = 1'000'000'000'000;

}  // namespace tessera
