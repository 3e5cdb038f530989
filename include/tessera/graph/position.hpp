// SPDX-License-Identifier: Apache-2.0
// Where elements stand, as numbers in the trace.
#pragma once

#include <tessera/graph/value.hpp>

namespace tessera::graph {

/// 0, 1, ... along dimension `d` of an array of `shape`, whose other dimensions have extent 1 here; uncut.
constexpr value position(graph* owner, const aval& shape, int d, dtype type) {
  aval line = scalar_aval(type);
  line.rank = shape.rank;
  for (int i = 0; i < line.rank; ++i) line.dims[i] = {1, 0};
  line.dims[d].extent = shape.dims[d].extent;
  const value counted = write(owner, op::iota, line, {});
  owner->at(counted.id).attribute[0] = static_cast<std::uint64_t>(d);
  return counted;
}

/// The row-major number of each element among those along the dimensions `dims` of `shape`.
constexpr value row_major_position(graph* owner, const aval& shape, sharding::dim_set dims, dtype type) {
  value total = constant(owner, type, 0);
  std::int64_t stride = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    if (!(dims & (1U << d))) continue;
    const value here = position(owner, shape, d, type);
    const value scaled = stride == 1 ? here : here * static_cast<double>(stride);
    total = stride == 1 ? scaled : total + scaled;
    stride *= shape.dims[d].extent;
  }
  return total;
}

}  // namespace tessera::graph
