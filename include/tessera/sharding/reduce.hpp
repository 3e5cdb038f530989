// SPDX-License-Identifier: Apache-2.0
// Sharding rule of reductions over any set of dimensions.
#pragma once

#include <tessera/core/resolve.hpp>

#include <span>

namespace tessera::sharding {

/// A set of dimensions: one bit each.
using dim_set = std::uint32_t;

constexpr dim_set all_dims(int rank) { return (1U << rank) - 1; }

/// Dimensions as users count them (from 0, or from -1 backwards) as a set; -1 of rank `rank` is the last one.
struct dim_set_ruling {
  dim_set dims = 0;
  message failure = message::none;
  int named = 0;  ///< the dimension that is wrong, as the user counts
};
constexpr dim_set_ruling named_dims(std::span<const int> named, int rank) {
  dim_set set = 0;
  for (int d : named) {
    const int place = d < 0 ? d + rank : d;
    if (place < 0 || place >= rank) return {0, message::reduce_axis, d};
    if (set & (1U << place)) return {0, message::reduce_axis_twice, d};
    set |= 1U << place;
  }
  return {set};
}

/// Reduced dimensions vanish from the type (or become extent 1, uncut, with `keepdims`); the others keep their cuts.
/// Reducing a cut dimension costs an all-reduce, or a reduce-scatter where `out_spec` puts the axis back.
constexpr ruling reduce(const aval& operand, dim_set dims, bool keepdims, const spec_value* out_spec,
                        const mesh_value& mesh) {
  aval result = scalar_aval(operand.type);
  for (int i = 0; i < operand.rank; ++i) {
    if (!(dims & (1U << i))) result.dims[result.rank++] = operand.dims[i];
    else if (keepdims) result.dims[result.rank++] = {1, 0};
  }
  return out_spec != nullptr ? with_spec(result, *out_spec, mesh) : ruling{result};
}

/// Elements that one result element is made of.
constexpr std::int64_t reduced_size(const aval& operand, dim_set dims) {
  std::int64_t n = 1;
  for (int i = 0; i < operand.rank; ++i)
    if (dims & (1U << i)) n *= operand.dims[i].extent;
  return n;
}

}  // namespace tessera::sharding
