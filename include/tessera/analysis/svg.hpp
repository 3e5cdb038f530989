// SPDX-License-Identifier: Apache-2.0
// Text in pictures.
#pragma once

#include <string>
#include <string_view>

namespace tessera::analysis {

/// Text between the tags of a picture.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else out += c;
  }
  return out;
}

}  // namespace tessera::analysis
