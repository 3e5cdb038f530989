// SPDX-License-Identifier: Apache-2.0
// Writing nodes that take parts of arrays and put arrays together.
#pragma once

#include <tessera/graph/value.hpp>
#include <tessera/sharding/slice.hpp>

#include <span>

namespace tessera::graph {

/// Dimensions one slice or update_slice node takes a part of at most; an attribute each.
inline constexpr int max_sliced_dims = 4;

/// A sliced dimension as an attribute: dimension + 1 in 4 bits, the stride in 28, the start in 32.
constexpr std::uint64_t pack_slice(int d, const sharding::dim_slice& s) {
  constexpr std::int64_t far = 1LL << 27;
  if (s.start >= far * 32 || s.stride >= far || s.stride < -far)
    throw std::length_error("slice: a start beyond 2^32 or a stride beyond 2^27 is not supported");
  return static_cast<std::uint64_t>(d + 1) | (static_cast<std::uint64_t>(s.stride) & 0xfffffffU) << 4 |
         static_cast<std::uint64_t>(s.start) << 32;
}

/// The slices of a node, one a dimension, from its attributes; counts are those of `part`, the type of the smaller
/// side.
constexpr sharding::slices slices_of(const node& n, const aval& part) {
  sharding::slices all = sharding::everything(part);
  for (std::uint64_t packed : n.attribute) {
    if (packed == 0) continue;
    sharding::dim_slice& s = all.of[(packed & 15U) - 1];
    const auto stride = static_cast<std::int64_t>(packed >> 4 & 0xfffffffU);
    s.stride = stride >= (1LL << 27) ? stride - (1LL << 28) : stride;
    s.start = static_cast<std::int64_t>(packed >> 32);
  }
  return all;
}

/// `type` with the extents of a slice of it.
constexpr aval sliced_type(aval type, const sharding::slices& taken) {
  for (int d = 0; d < type.rank; ++d) type.dims[d].extent = taken.of[d].count;
  return type;
}

/// The first sliced dimensions of `taken`, as many as one node has room for, and the rest.
struct slice_groups {
  sharding::slices first;
  sharding::slices rest;  ///< of what the first ones leave
  bool whole = true;      ///< nothing is sliced
  bool more = false;
};
constexpr slice_groups group_slices(const aval& type, const sharding::slices& taken) {
  slice_groups groups{sharding::everything(type), sharding::everything(sliced_type(type, taken))};
  int used = 0;
  for (int d = 0; d < type.rank; ++d) {
    if (taken.of[d].is_all_of(type.dims[d].extent)) continue;
    groups.whole = false;
    if (used < max_sliced_dims) {
      groups.first.of[d] = taken.of[d];
      ++used;
    } else {
      groups.rest.of[d] = taken.of[d];
      groups.more = true;
    }
  }
  return groups;
}

constexpr void set_slices(node& n, const aval& whole, const sharding::slices& taken) {
  int next = 0;
  for (int d = 0; d < whole.rank; ++d) {
    sharding::dim_slice s = taken.of[d];
    if (s.is_all_of(whole.dims[d].extent)) continue;
    if (s.count <= 1) s.stride = 1;
    if (s.count == 0) s.start = 0;
    n.attribute[next++] = pack_slice(d, s);
  }
}

/// The elements of `v` that `taken` names; dimensions of which not all is taken are uncut.
constexpr value slice(value v, const sharding::slices& taken) {
  const aval type = v.type();
  const slice_groups groups = group_slices(type, taken);
  if (groups.whole) return v;
  const value part = write(v.owner, op::slice, sliced_type(type, groups.first), {v.id});
  set_slices(v.owner->at(part.id), type, groups.first);
  return groups.more ? slice(part, groups.rest) : part;
}

/// `base` with the elements that `taken` names replaced by those of `piece`, which is cut like it.
constexpr value update_slice(value base, value piece, const sharding::slices& taken) {
  const aval type = base.type();
  const slice_groups groups = group_slices(type, taken);
  if (groups.whole) return piece;
  const value part = groups.more ? update_slice(slice(base, groups.first), piece, groups.rest) : piece;
  const value updated = write(base.owner, op::update_slice, type, {base.id, part.id});
  set_slices(base.owner->at(updated.id), type, groups.first);
  return updated;
}

/// `extent` elements of `v` along dimension `d`, where they are uncut, from the run-time scalar `start` on; see
/// ops/dynamic_slice.hpp.
constexpr value dynamic_slice(value v, value start, int d, std::int64_t extent) {
  aval type = v.type();
  if (type.dims[d].extent == extent) return v;
  type.dims[d].extent = extent;
  const value part = write(v.owner, op::dynamic_slice, type, {v.id, start.id});
  v.owner->at(part.id).attribute[0] = static_cast<std::uint64_t>(d);
  return part;
}

/// `base` with `piece` in its place, along one dimension.
constexpr value dynamic_update_slice(value base, value piece, value start, int d) {
  if (base.type().dims[d].extent == piece.type().dims[d].extent) return piece;
  const value updated = write(base.owner, op::dynamic_update, base.type(), {base.id, piece.id, start.id});
  base.owner->at(updated.id).attribute[0] = static_cast<std::uint64_t>(d);
  return updated;
}

/// An array whose elements are all still to be written, by `update_slice`.
constexpr value empty(graph* owner, const aval& type) { return write(owner, op::empty, type, {}); }

/// `v` with copies of the scalar `fill` before, behind and between elements; padded dimensions are uncut.
constexpr value pad(value v, value fill, const sharding::paddings& by) {
  const aval from = v.type();
  aval type = from;
  sharding::slices kept = sharding::everything(from);  // of v
  sharding::slices place;                              // in the result
  for (int d = 0; d < from.rank; ++d) {
    const sharding::dim_padding& p = by.of[d];
    const std::int64_t extent = p.extent(from.dims[d].extent);
    const std::int64_t stride = p.interior + 1;
    // Elements first, ..., last - 1 of v stand at low + stride i, inside [0, extent).
    const std::int64_t first = p.low < 0 ? (-p.low + stride - 1) / stride : 0;
    const std::int64_t room = extent - p.low;
    const std::int64_t fit = room <= 0 ? 0 : (room + stride - 1) / stride;
    const std::int64_t last = fit < from.dims[d].extent ? fit : from.dims[d].extent;
    const std::int64_t count = last > first ? last - first : 0;
    kept.of[d] = {count == 0 ? 0 : first, count, 1};
    place.of[d] = {count == 0 ? 0 : p.low + stride * first, count, stride};
    type.dims[d].extent = extent;
  }
  const value part = slice(v, kept);
  if (part.type().size() == 0 && type.size() > 0) return broadcast(fill, type, 0);
  return update_slice(broadcast(fill, type, 0), part, place);
}

/// All `parts` one after another along dimension `d`, where they are uncut.
constexpr value concatenate(std::span<const value> parts, int d) {
  aval type = parts[0].type();
  type.dims[d].extent = 0;
  for (const value& part : parts) type.dims[d].extent += part.type().dims[d].extent;
  value whole = parts[0];
  if (whole.type() == type) return whole;
  whole = empty(parts[0].owner, type);
  sharding::slices taken = sharding::everything(type);
  taken.of[d].count = 0;
  for (const value& part : parts) {
    taken.of[d].start += taken.of[d].count;
    taken.of[d].count = part.type().dims[d].extent;
    if (taken.of[d].count > 0) whole = update_slice(whole, part, taken);
  }
  return whole;
}

}  // namespace tessera::graph
