// SPDX-License-Identifier: Apache-2.0
// The shortest decimal text that reads back as the same number, for messages.
#pragma once

#include <charconv>
#include <concepts>
#include <string>

namespace tessera {

template <class T>
requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>)std::string number_text(T value) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace tessera
