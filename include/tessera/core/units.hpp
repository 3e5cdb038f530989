// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes: powers of 1024 for memory, powers of 1000 for what data sheets and networks count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera {

inline constexpr std::int64_t KiB = std::int64_t{1} << 10;
inline constexpr std::int64_t MiB = std::int64_t{1} << 20;
inline constexpr std::int64_t GiB = std::int64_t{1} << 30;
inline constexpr std::int64_t TiB = std::int64_t{1} << 40;

inline constexpr std::int64_t KB = 1'000;
inline constexpr std::int64_t MB = 1'000'000;
inline constexpr std::int64_t GB = 1'000'000'000;
inline constexpr std::int64_t TB = 1'000'000'000'000;

/// A size as a type, so that a message can name it; it converts to its value.
template <std::int64_t Bytes>
using size_constant = std::integral_constant<std::int64_t, Bytes>;

namespace units_detail {

/// `Digits` of a literal, a whole decimal number, times `unit`; -1 if it is none or too large.
template <char... Digits>
constexpr std::int64_t scaled(std::int64_t unit) {
  const char digits[] = {Digits...};
  std::int64_t value = 0;
  for (std::size_t i = 0; i < sizeof...(Digits); ++i) {
    const char c = digits[i];
    if (c == '\'') continue;
    if (c < '0' || c > '9' || (i == 0 && c == '0' && sizeof...(Digits) > 1)) return -1;
    const std::int64_t digit = c - '0';
    if (value > (std::numeric_limits<std::int64_t>::max() / unit - digit) / 10) return -1;
    value = 10 * value + digit;
  }
  return value * unit;
}

template <std::int64_t Unit, char... Digits>
constexpr auto size_literal() {
  constexpr std::int64_t bytes = scaled<Digits...>(Unit);
  static_assert(bytes >= 0, "a size is a whole decimal number of less than 2^63 bytes");
  return size_constant<bytes>{};
}

}  // namespace units_detail

/// `80_GB`, `64_MiB`: a size_constant.
inline namespace literals {

template <char... Digits>
constexpr auto operator""_KB() {
  return units_detail::size_literal<KB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_MB() {
  return units_detail::size_literal<MB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_GB() {
  return units_detail::size_literal<GB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_TB() {
  return units_detail::size_literal<TB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_KiB() {
  return units_detail::size_literal<KiB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_MiB() {
  return units_detail::size_literal<MiB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_GiB() {
  return units_detail::size_literal<GiB, Digits...>();
}
template <char... Digits>
constexpr auto operator""_TiB() {
  return units_detail::size_literal<TiB, Digits...>();
}

}  // namespace literals

}  // namespace tessera
