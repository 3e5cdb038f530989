// SPDX-License-Identifier: Apache-2.0
// Sharding rule of elementwise operations, with broadcasting of scalars and of dimensions of extent 1.
#pragma once

#include <tessera/core/resolve.hpp>

#include <initializer_list>
#include <span>

namespace tessera::sharding {

/// `a` with dimensions of extent 1 in front, up to `rank`.
constexpr aval pad_rank(const aval& a, int rank) {
  aval padded = a;
  const int added = rank - a.rank;
  padded.rank = rank;
  for (int i = 0; i < rank; ++i) padded.dims[i] = i < added ? dim{1, 0} : a.dims[i - added];
  return padded;
}

/// One dimension of the result: the common extent and the one spec that is left when uncut dimensions adapt.
constexpr message join_dim(dim& joined, const dim& next) {
  if (next == dim{1, 0}) return message::none;
  if (joined == dim{1, 0}) {
    joined = next;
    return message::none;
  }
  if (joined.extent != next.extent && joined.extent != 1 && next.extent != 1) return message::elementwise_shape;
  if (joined.axes != 0 && next.axes != 0 && joined.axes != next.axes) return message::elementwise_sharding;
  if (joined.axes == 0) joined.axes = next.axes;
  if (joined.extent == 1) joined.extent = next.extent;
  return message::none;
}

/// Extents broadcast as NumPy's do; an uncut dimension adapts to a cut one, two different cuts are an error.
/// The element type of the result is that of the first operand. Source: JAX, Explicit mode.
constexpr ruling broadcast_together(std::span<const aval> operands, const mesh_value& mesh) {
  aval result = scalar_aval(operands[0].type);
  for (const aval& a : operands) result.rank = a.rank > result.rank ? a.rank : result.rank;
  for (int i = 0; i < result.rank; ++i) result.dims[i] = {1, 0};
  for (const aval& a : operands) {
    const aval padded = pad_rank(a, result.rank);
    for (int i = 0; i < result.rank; ++i)
      if (const message why = join_dim(result.dims[i], padded.dims[i]); why != message::none) return refuse(why, i);
  }
  if (result.axis_on_two_dims()) return {result, message::elementwise_duplicate};
  const ruling checked = check_cuts(result, mesh);
  return checked.ok() ? ruling{result} : checked;
}

/// The rule of an operation on operands of one element type.
constexpr ruling elementwise(std::span<const aval> operands, const mesh_value& mesh) {
  for (const aval& a : operands)
    if (a.type != operands[0].type) return refuse(message::elementwise_dtype);
  return broadcast_together(operands, mesh);
}

/// The rule of `where(predicate, on_true, on_false)`: if all have one shape they have one spec (a scalar predicate is
/// free); otherwise they broadcast, and uncut dimensions adapt. Source: jax.numpy.where.
constexpr ruling where(const aval& predicate, const aval& on_true, const aval& on_false, const mesh_value& mesh) {
  if (predicate.type != dtype::bool_) return refuse(message::where_predicate);
  if (on_true.type != on_false.type) return refuse(message::where_dtype);
  const bool free = predicate.rank == 0;
  const bool one_shape = on_true.same_shape(on_false) && (free || predicate.same_shape(on_true));
  const bool one_spec = on_true.same_spec(on_false) && (free || predicate.same_spec(on_true));
  if (one_shape && !one_spec) return refuse(message::where_sharding);
  const aval operands[] = {on_true, on_false, predicate};
  return broadcast_together(operands, mesh);
}

}  // namespace tessera::sharding
