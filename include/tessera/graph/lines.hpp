// SPDX-License-Identifier: Apache-2.0
// Which instruction lists combine the lines that they make.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/graph/program.hpp>

#include <cstddef>
#include <cstdint>

namespace tessera::graph {

/// The kind of reduction that a line group's fused kernel can do in registers, or -1: of one result, floats as wide as
/// the kernel's vectors, in one row.
constexpr int kind_in_registers(const program& p, const row_group& group) {
  const step& maker = p.steps[static_cast<std::size_t>(group.first)];
  const step& reduce = p.steps[static_cast<std::size_t>(group.first) + 1];
  const buffer& made = p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(reduce.first)].buffer)];
  const int lanes = p.words[static_cast<std::size_t>(p.codes[static_cast<std::size_t>(maker.code)].first)].value;
  const bool wide = (made.type == dtype::f32 || made.type == dtype::f64) && lanes == info(made.type).size;
  return wide && maker.results == 1 && maker.rank <= 1 ? static_cast<int>(reduce.sizes[0]) : -1;
}

/// The kind that the kernel of instruction list `code` combines, or -1: that of the first such group.
constexpr int combined_kind(const program& p, int code) {
  for (const row_group& group : p.groups)
    if (group.line && p.steps[static_cast<std::size_t>(group.first)].code == code)
      if (const int kind = kind_in_registers(p, group); kind >= 0) return kind;
  return -1;
}

}  // namespace tessera::graph
