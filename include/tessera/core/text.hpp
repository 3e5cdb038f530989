// SPDX-License-Identifier: Apache-2.0
// Compile-time strings: `text<N>` names things in template arguments, `text_buffer` builds sentences about them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

/// A string usable as a template argument; N counts the terminator, so equal names are equal types.
template <std::size_t N>
struct text {
  char chars[N]{};

  constexpr text() = default;
  constexpr text(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) chars[i] = literal[i];
  }

  static constexpr std::size_t length = N - 1;
  constexpr std::string_view view() const { return {chars, length}; }
  friend constexpr bool operator==(const text&, const text&) = default;
};

/// A sentence under construction in a constant expression; what does not fit is cut off.
struct text_buffer {
  static constexpr std::size_t capacity = 768;

  char chars[capacity]{};
  std::size_t size = 0;

  constexpr std::string_view view() const { return {chars, size}; }

  constexpr text_buffer& operator<<(char c) {
    if (size < capacity - 1) chars[size++] = c;
    return *this;
  }
  constexpr text_buffer& operator<<(std::string_view s) {
    for (char c : s) *this << c;
    return *this;
  }
  constexpr text_buffer& operator<<(std::int64_t value) {
    char digits[20]{};
    int count = 0;
    auto magnitude = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do digits[count++] = static_cast<char>('0' + magnitude % 10);
    while (magnitude /= 10);
    if (value < 0) *this << '-';
    while (count > 0) *this << digits[--count];
    return *this;
  }
  constexpr text_buffer& operator<<(int value) { return *this << static_cast<std::int64_t>(value); }
};

/// The text that the constexpr function object Make builds, with exactly the length it needs.
template <auto Make>
constexpr auto exact_text() {
  constexpr text_buffer buffer = Make();
  text<buffer.size + 1> result;
  for (std::size_t i = 0; i < buffer.size; ++i) result.chars[i] = buffer.chars[i];
  result.chars[buffer.size] = '\0';
  return result;
}

}  // namespace tessera
