// SPDX-License-Identifier: Apache-2.0
// Sharding rules of operations that move no element's value: reshape, transpose, broadcast_to.
#pragma once

#include <tessera/core/resolve.hpp>
#include <tessera/sharding/dot_general.hpp>

namespace tessera::sharding {

/// Refuses extents below zero.
constexpr ruling check_extents(const aval& target) {
  for (int i = 0; i < target.rank; ++i)
    if (target.dims[i].extent < 0) return refuse(message::shape_extent, i);
  return {target};
}

/// Whether two shapes are the same up to dimensions of extent 1; if so the cuts follow their dimensions, and the
/// ruling's result is `target` with them.
constexpr bool only_ones_differ(const aval& operand, aval& target) {
  int i = 0;
  int j = 0;
  while (i < operand.rank || j < target.rank) {
    if (i < operand.rank && j < target.rank && operand.dims[i].extent == target.dims[j].extent) {
      target.dims[j++].axes = operand.dims[i++].axes;
    } else if (i < operand.rank && operand.dims[i].extent == 1) {
      ++i;
    } else if (j < target.rank && target.dims[j].extent == 1) {
      target.dims[j++].axes = 0;
    } else {
      return false;
    }
  }
  return true;
}

/// Hands the axes of a split dimension, major to minor, to the new dimensions [from, to) while they divide them.
/// A local relabelling needs each new dimension but the last that receives an axis to be used up by its axes.
constexpr bool split_axes(axis_list axes, aval& target, int from, int to, const mesh_value& mesh) {
  if (axes == 0) return true;
  if (from >= to) return false;
  int j = from;
  std::int64_t left = target.dims[j].extent;
  for (int i = 0; i < axis_count(axes); ++i) {
    const int axis = axis_at(axes, i);
    const std::int64_t devices = mesh.size(axis);
    if (devices == 0) return false;
    while (left % devices != 0) {
      if (left != 1 || ++j >= to) return false;
      left = target.dims[j].extent;
    }
    target.dims[j].axes = axis_append(target.dims[j].axes, axis);
    left /= devices;
  }
  return true;
}

/// Joins the axes of merged dimensions [from, to). The blocks lie contiguously only if every dimension before the
/// last cut one is used up by its axes.
constexpr message merge_axes(const aval& operand, int from, int to, dim& merged, const mesh_value& mesh) {
  int last = from - 1;
  for (int i = from; i < to; ++i)
    if (operand.dims[i].axes != 0) last = i;
  for (int i = from; i <= last; ++i) {
    const axis_list axes = operand.dims[i].axes;
    if (i < last && devices_along(axes, mesh) != operand.dims[i].extent) return message::reshape_merge;
    merged.axes = axis_concat(merged.axes, axes);
  }
  return message::none;
}

/// Row-major reshape. Uncut operands and a given `out_spec` always pass; otherwise only changes of 1s, one split, or
/// one merge that leaves every device's block where it is. Unreduced and reduced axes stay. Source: JAX, Explicit mode;
/// stricter for merges.
constexpr ruling reshape(const aval& operand, aval target, const spec_value* out_spec, const mesh_value& mesh) {
  if (const ruling checked = check_extents(target); !checked.ok()) return checked;
  target = with_marks(target, operand);
  target.type = operand.type;
  for (int i = 0; i < target.rank; ++i) target.dims[i].axes = 0;
  if (operand.size() != target.size()) return refuse(message::reshape_size);
  if (out_spec != nullptr) return with_cuts(target, *out_spec, mesh);
  if (operand.cut() == 0) return {target};
  if (aval adapted = target; only_ones_differ(operand, adapted)) return {adapted};

  int head = 0;
  while (head < operand.rank && head < target.rank && operand.dims[head].extent == target.dims[head].extent) {
    target.dims[head].axes = operand.dims[head].axes;
    ++head;
  }
  int tail = 0;
  while (tail < operand.rank - head && tail < target.rank - head &&
         operand.dims[operand.rank - 1 - tail].extent == target.dims[target.rank - 1 - tail].extent) {
    target.dims[target.rank - 1 - tail].axes = operand.dims[operand.rank - 1 - tail].axes;
    ++tail;
  }
  const int old_dims = operand.rank - head - tail;
  const int new_dims = target.rank - head - tail;
  if (old_dims == 1 && new_dims > 1) {
    if (!split_axes(operand.dims[head].axes, target, head, head + new_dims, mesh))
      return refuse(message::reshape_split, head);
    return {target};
  }
  if (new_dims == 1 && old_dims > 1) {
    const message why = merge_axes(operand, head, head + old_dims, target.dims[head], mesh);
    return why == message::none ? ruling{target} : refuse(why, head);
  }
  return refuse(message::reshape_unsupported);
}

/// Result dimension i is the operand's dimension `permutation[i]`, cuts included.
constexpr ruling transpose(const aval& operand, dim_list permutation) {
  if (dim_count(permutation) != operand.rank) return refuse(message::transpose_permutation);
  aval result = operand;
  for (int i = 0; i < operand.rank; ++i) {
    const int from = dim_at(permutation, i);
    if (from < 0 || from >= operand.rank) return refuse(message::transpose_permutation, i);
    for (int j = 0; j < i; ++j)
      if (dim_at(permutation, j) == from) return refuse(message::transpose_permutation, i);
    result.dims[i] = operand.dims[from];
  }
  return {result};
}

/// A spec for a transposed array as one for the array before.
constexpr spec_value unpermuted(const spec_value& spec, dim_list permutation) {
  spec_value natural = spec;
  natural.rank = dim_count(permutation);
  for (int i = 0; i < natural.rank; ++i) natural.dims[dim_at(permutation, i)] = i < spec.rank ? spec.dims[i] : 0;
  return natural;
}

/// NumPy's broadcast_to: dimensions align from the last; mapped ones keep their cuts, new and stretched ones are
/// uncut. With `out_spec` each operand dimension is uncut or cut as its target. Unreduced and reduced axes stay.
constexpr ruling broadcast_to(const aval& operand, aval target, const spec_value* out_spec, const mesh_value& mesh) {
  if (const ruling checked = check_extents(target); !checked.ok()) return checked;
  target = with_marks(target, operand);
  target.type = operand.type;
  const int added = target.rank - operand.rank;
  if (added < 0) return refuse(message::broadcast_shape);
  for (int i = 0; i < target.rank; ++i) {
    target.dims[i].axes = 0;
    if (i < added) continue;
    const dim& from = operand.dims[i - added];
    if (from.extent != target.dims[i].extent && from.extent != 1) return refuse(message::broadcast_shape, i);
    if (from.extent == target.dims[i].extent) target.dims[i].axes = from.axes;
  }
  if (out_spec == nullptr) return {target};
  const ruling chosen = with_cuts(target, *out_spec, mesh);
  if (!chosen.ok()) return chosen;
  for (int i = added; i < target.rank; ++i)
    if (const axis_list had = operand.dims[i - added].axes; had != 0 && had != chosen.result.dims[i].axes)
      return refuse(message::broadcast_sharding, i);
  return chosen;
}

}  // namespace tessera::sharding
