// SPDX-License-Identifier: Apache-2.0
// Rules inside shard_map: what a value is along a Manual axis, how collectives change that, and the body's boundary.
#pragma once

#include <tessera/core/resolve.hpp>

#include <initializer_list>
#include <span>

namespace tessera {

/// What a value is along a Manual axis: the same on all devices; different; a part of a sum that is still to be taken;
/// or the same, with a cotangent that is such a part.
enum class manual_state : std::uint8_t { invarying, varying, unreduced, reduced };

namespace sharding {

/// Mesh axes named by a user, in order, or why they are none.
struct axes_ruling {
  axis_list axes = 0;
  message failure = message::none;
  std::string_view axis{};
};

/// All of them exist, are Manual and are named once.
constexpr axes_ruling manual_axes(std::initializer_list<std::string_view> names, const mesh_value& mesh) {
  axes_ruling found;
  for (std::string_view name : names) {
    const int axis = mesh.find(name);
    if (axis < 0) return {0, message::collective_axis, name};
    if (set_of(found.axes) & bit_of(axis)) return {0, message::collective_axis_twice, name};
    if (mesh.kind(axis) != axis_kind::manual) return {0, message::collective_not_manual, name};
    found.axes = axis_append(found.axes, axis);
  }
  return found;
}

constexpr manual_state state_along(const aval& a, int axis) {
  if (a.varying & bit_of(axis)) return manual_state::varying;
  if (a.unreduced & bit_of(axis)) return manual_state::unreduced;
  return a.reduced & bit_of(axis) ? manual_state::reduced : manual_state::invarying;
}

/// Whether a value is the same thing along all of these axes.
constexpr bool one_state(const aval& a, axis_list axes) {
  for (int i = 1; i < axis_count(axes); ++i)
    if (state_along(a, axis_at(axes, i)) != state_along(a, axis_at(axes, 0))) return false;
  return true;
}

/// `a` as `state` along a set of axes.
constexpr aval with_state(aval a, axis_set axes, manual_state state) {
  const auto put = [&](axis_set set, manual_state of) {
    return static_cast<axis_set>(of == state ? set | axes : set & ~axes);
  };
  a.varying = put(a.varying, manual_state::varying);
  a.unreduced = put(a.unreduced, manual_state::unreduced);
  a.reduced = put(a.reduced, manual_state::reduced);
  return a;
}

/// The casts there are: invarying to varying or reduced, varying to unreduced, reduced to varying. None moves data.
constexpr ruling pcast(const aval& a, axis_list axes, manual_state to) {
  for (int i = 0; i < axis_count(axes); ++i) {
    const manual_state from = state_along(a, axis_at(axes, i));
    const bool known = (from == manual_state::invarying && to == manual_state::varying) ||
                       (from == manual_state::invarying && to == manual_state::reduced) ||
                       (from == manual_state::varying && to == manual_state::unreduced) ||
                       (from == manual_state::reduced && to == manual_state::varying);
    if (!known) return {with_state(a, set_of(axes), to), message::pcast_transition};
  }
  return {with_state(a, set_of(axes), to)};
}

/// What collectives see: an invarying or reduced operand is cast to varying first.
constexpr ruling collective_operand(const aval& a, axis_list axes) {
  if (!one_state(a, axes)) return refuse(message::collective_states);
  if (axes == 0 || state_along(a, axis_at(axes, 0)) == manual_state::unreduced) return {a};
  return {with_state(a, set_of(axes), manual_state::varying)};
}

/// The same for those to which a pending sum means nothing.
constexpr ruling varying_operand(const aval& a, axis_list axes) {
  const ruling seen = collective_operand(a, axes);
  return seen.ok() && (seen.result.unreduced & set_of(axes)) != 0 ? refuse(message::collective_pending) : seen;
}

/// Varying or unreduced to invarying; `of_sums` says whether pending sums may be finished.
constexpr ruling psum(const aval& a, axis_list axes, bool of_sums) {
  if (a.type == dtype::bool_) return refuse(message::collective_needs_number);
  ruling seen = of_sums ? collective_operand(a, axes) : varying_operand(a, axes);
  if (seen.ok()) seen.result = with_state(seen.result, set_of(axes), manual_state::invarying);
  return seen;
}

/// Dimension `d` as users count it, or -1.
constexpr int dim_place(int d, int rank) {
  const int place = d < 0 ? d + rank : d;
  return place < rank ? place : -1;
}

/// The blocks of all devices side by side along dimension `d`: varying to varying, invarying or reduced.
constexpr ruling gather_blocks(const aval& a, axis_list axes, int d, manual_state to, const mesh_value& mesh) {
  ruling seen = varying_operand(a, axes);
  if (!seen.ok()) return seen;
  if (d < 0) return refuse(message::collective_dim);
  seen.result.dims[d].extent *= devices_along(axes, mesh);
  seen.result = with_state(seen.result, set_of(axes), to);
  return seen;
}

/// Each device's block along dimension `d` of something; `a` becomes varying.
constexpr ruling split_blocks(aval a, axis_list axes, int d, const mesh_value& mesh) {
  if (d < 0) return refuse(message::collective_dim);
  const std::int64_t devices = devices_along(axes, mesh);
  if (a.dims[d].extent % devices != 0) return refuse(message::collective_indivisible, d, mesh.name(axis_at(axes, 0)));
  a.dims[d].extent /= devices;
  return {with_state(a, set_of(axes), manual_state::varying)};
}

/// The sum over devices, of which each keeps its block along dimension `d`: varying or unreduced to varying.
constexpr ruling scatter_blocks(const aval& a, axis_list axes, int d, const mesh_value& mesh) {
  if (a.type == dtype::bool_) return refuse(message::collective_needs_number);
  const ruling seen = collective_operand(a, axes);
  return seen.ok() ? split_blocks(seen.result, axes, d, mesh) : seen;
}

/// Block i along `split` goes to device i, which lays what it receives side by side along `concat`.
constexpr ruling exchange_blocks(const aval& a, axis_list axes, int split, int concat, const mesh_value& mesh) {
  const ruling seen = varying_operand(a, axes);
  if (!seen.ok()) return seen;
  if (concat < 0) return refuse(message::collective_dim);
  ruling blocks = split_blocks(seen.result, axes, split, mesh);
  if (blocks.ok()) blocks.result.dims[concat].extent *= devices_along(axes, mesh);
  return blocks;
}

/// What one device has goes to another one: varying to varying.
constexpr ruling permute_blocks(const aval& a, axis_list axes) { return varying_operand(a, axes); }

/// A set of axes of one mesh as a list of another's.
constexpr axis_list list_over(axis_set set, const mesh_value& from, const mesh_value& to) {
  axis_list list = 0;
  for (int i = 0; i < from.rank; ++i)
    if (set & bit_of(i)) list = axis_append(list, to.find(from.name(i)));
  return list;
}

/// `a` as types say it where the axes of a set are automatic.
constexpr aval without_axes(aval a, axis_set axes) {
  for (int d = 0; d < a.rank; ++d) {
    axis_list kept = 0;
    for (int i = 0; i < axis_count(a.dims[d].axes); ++i)
      if (const int axis = axis_at(a.dims[d].axes, i); (axes & bit_of(axis)) == 0) kept = axis_append(kept, axis);
    a.dims[d].axes = kept;
  }
  return a;
}

/// The block of `a` that the body of a shard_map over `manual` axes sees: they vanish from dimensions, along which the
/// value is varying. They have to be the major ones where other axes cut the same dimension.
constexpr ruling to_local(aval a, axis_set manual, const mesh_value& mesh) {
  for (int d = 0; d < a.rank; ++d) {
    axis_list kept = 0;
    for (int i = 0; i < axis_count(a.dims[d].axes); ++i) {
      const int axis = axis_at(a.dims[d].axes, i);
      if ((manual & bit_of(axis)) == 0) {
        kept = axis_append(kept, axis);
        continue;
      }
      if (kept != 0) return refuse(message::shard_map_mixed_cut, d, mesh.name(axis));
      a.dims[d].extent /= mesh.size(axis);
      a.varying = static_cast<axis_set>(a.varying | bit_of(axis));
    }
    a.dims[d].axes = kept;
  }
  return {a};
}

/// The array whose blocks along `manual` axes are `a`, a value of the body, cut as `spec` says. Unreduced and reduced
/// axes are named there just as they are.
constexpr ruling to_global(aval a, const spec_value& spec, axis_set manual, const mesh_value& mesh) {
  const aval inside = a;
  if (!spec.unknown.name.empty())
    return {inside, message::spec_unknown_axis, spec.unknown.dimension, spec.unknown.name};
  if (spec.rank > a.rank) return {inside, message::spec_too_long, a.rank};
  axis_set mentioned = 0;
  for (int d = 0; d < spec.rank; ++d) {
    for (int i = 0; i < axis_count(spec.dims[d]); ++i) {
      const int axis = axis_at(spec.dims[d], i);
      if ((manual & bit_of(axis)) == 0) return {inside, message::shard_map_out_axis, d, mesh.name(axis)};
      if (mentioned & bit_of(axis)) return {inside, message::spec_axis_twice, d, mesh.name(axis)};
      mentioned = static_cast<axis_set>(mentioned | bit_of(axis));
      a.dims[d].extent *= mesh.size(axis);
    }
    a.dims[d].axes = axis_concat(spec.dims[d], a.dims[d].axes);
  }
  for (int axis = 0; axis < mesh.rank; ++axis)
    if (inside.varying & manual & bit_of(axis) & ~mentioned)
      return {inside, message::shard_map_may_vary, -1, mesh.name(axis)};
  for (int axis = 0; axis < mesh.rank; ++axis) {
    const bool unreduced = ((inside.unreduced & manual) ^ spec.unreduced) & bit_of(axis);
    const bool reduced = ((inside.reduced & manual) ^ spec.reduced) & bit_of(axis);
    if (unreduced || reduced) return {inside, message::shard_map_marks, -1, mesh.name(axis)};
  }
  if (spec.unreduced != 0 && spec.pending != inside.pending) return {inside, message::shard_map_marks};
  a.varying = static_cast<axis_set>(a.varying & ~manual);
  return {a};
}

}  // namespace sharding
}  // namespace tessera
