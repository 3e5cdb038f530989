// SPDX-License-Identifier: Apache-2.0
// What a step does, in a few words.
#pragma once

#include <tessera/core/text.hpp>
#include <tessera/graph/op.hpp>
#include <tessera/graph/program.hpp>

#include <algorithm>

namespace tessera::graph {

/// `dot 256x1024x256`, `fused 1024 {tanh mul}`; of long instruction lists the last operations.
constexpr void write_step(text_buffer& out, const program& p, int i) {
  const step& s = p.steps[static_cast<std::size_t>(i)];
  out << about(s.kind).name;
  const int shown = about(s.kind).shown;
  for (int d = 0; d < (shown < 0 ? s.rank : shown); ++d) out << (d == 0 ? " " : "x") << s.sizes[d];
  if (s.code < 0) return;
  constexpr int most = 4;
  const auto first = static_cast<std::size_t>(p.codes[static_cast<std::size_t>(s.code)].first);
  const int sources = p.words[first + 1].value, count = p.words[first + 2].value;
  out << (count > most ? " {.." : " {");
  for (int k = std::max(count - most, 0); k < count; ++k) {
    const auto at = first + 4 + static_cast<std::size_t>(2 * sources + 6 * k);
    out << (k == 0 ? "" : " ") << about(static_cast<op>(p.words[at].value)).name;
  }
  out << "}";
}

}  // namespace tessera::graph
