// SPDX-License-Identifier: Apache-2.0
// The ways in which a global value lies on the devices, and how to get from one of them to another.
#pragma once

#include <tessera/graph/value.hpp>

#include <initializer_list>

namespace tessera::transform {

using graph::op;

using graph::combine_of;
using tessera::combine;

/// One way a global value exists on the devices: its cuts and unreduced axes, and the local node that holds the block.
struct form {
  aval type{};
  int local = -1;
  int next = -1;
};

/// The first `count` axes of a list.
constexpr axis_list first_axes(axis_list list, int count) {
  return count == 8 ? list : list & ((axis_list{1} << (4 * count)) - 1);
}

/// How many of the last axes of a list are in a set.
constexpr int tail_within(axis_list list, axis_set set) {
  int n = 0;
  const int count = axis_count(list);
  while (n < count && (set & bit_of(axis_at(list, count - 1 - n)))) ++n;
  return n;
}

/// All axes that cut `type`, dimension by dimension. Where the blocks of two types are equal in extent, a device finds
/// the block it wants on the device whose place along the one type's list is its own along the other's.
constexpr axis_list all_axes(const aval& type) {
  axis_list list = 0;
  for (int d = 0; d < type.rank; ++d) list = axis_concat(list, type.dims[d].axes);
  return list;
}

/// The local program so far, and the single moves between forms; each appends at most one node and returns the form it
/// leads to. A permute has two lists of axes: a device is sent the block of the one whose place along the first
/// list is its own place along the second.
struct form_moves {
  graph::graph result{};

  constexpr const mesh_value& mesh() const { return result.mesh; }

  /// The type of the block of `type`.
  constexpr aval block(const aval& type) const {
    aval local = local_block(type, mesh());
    local.varying = static_cast<axis_set>(type.cut() | type.unreduced);
    local.unreduced = 0;
    local.pending = combine::sum;
    return local;
  }

  /// The type of a block that node `from` of the result gives: inside shard_map it differs over axes which cut no type,
  /// though never over more of them than `type` says.
  constexpr aval block(const aval& type, int from) const {
    aval local = block(type);
    local.varying = static_cast<axis_set>(local.varying | (result.type(from).varying & type.varying));
    return local;
  }

  constexpr int emit(op code, const aval& block_type, std::initializer_list<int> operands,
                     std::initializer_list<std::uint64_t> attributes) {
    graph::node n;
    n.code = code;
    n.type = block_type;
    int i = 0;
    for (int operand : operands) n.operands[i++] = operand;
    i = 0;
    for (std::uint64_t a : attributes) n.attribute[i++] = a;
    return result.add(n);
  }

  /// `type` unreduced over `axes` only.
  static constexpr aval still_pending(aval type, axis_set axes) {
    type.unreduced = axes;
    if (axes == 0) type.pending = combine::sum;
    return type;
  }

  /// The axes by which `wanted` cuts a dimension and `have` does not yet, major first, as far as they are in `set`;
  /// none where `have` has others.
  static constexpr axis_list next_axes(axis_list have, axis_list wanted, axis_set set) {
    if ((set_of(have) & ~set_of(wanted)) != 0) return 0;
    axis_list next = 0;
    for (int i = 0; i < axis_count(wanted); ++i) {
      const axis_set axis = bit_of(axis_at(wanted, i));
      if (set_of(have) & axis) continue;
      if (!(set & axis)) break;
      next = axis_append(next, axis_at(wanted, i));
    }
    return next;
  }

  /// A reduce-scatter for a dimension that `wanted` cuts further by axes that are pending.
  constexpr form scatter_pending(form from, const aval& wanted) {
    for (int d = 0; d < from.type.rank; ++d) {
      const axis_list scattered = next_axes(from.type.dims[d].axes, wanted.dims[d].axes, from.type.unreduced);
      if (scattered == 0) continue;
      const combine kind = from.type.pending;
      from.type.dims[d].axes = axis_concat(from.type.dims[d].axes, scattered);
      from.type = still_pending(from.type, static_cast<axis_set>(from.type.unreduced & ~set_of(scattered)));
      from.local = emit(op::reduce_scatter, block(from.type, from.local), {from.local},
                        {scattered, static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(kind)});
      break;
    }
    return from;
  }

  /// An all-reduce over all axes that are pending and not wanted so.
  constexpr form reduce_pending(form from, const aval& wanted) {
    const auto summed = static_cast<axis_set>(from.type.unreduced & ~wanted.unreduced);
    if (summed == 0) return from;
    const combine kind = from.type.pending;
    from.type = still_pending(from.type, static_cast<axis_set>(from.type.unreduced & wanted.unreduced));
    from.local =
        emit(op::all_reduce, block(from.type, from.local), {from.local}, {summed, static_cast<std::uint64_t>(kind)});
    return from;
  }

  constexpr int constant(dtype type, double number) {
    const int id = emit(op::constant, scalar_aval(type), {}, {});
    result.at(id).value = number;
    return id;
  }

  /// A device's place along some axes, as int32[].
  constexpr int place_along(axis_list axes) {
    if (axes == 0) return constant(dtype::i32, 0);
    aval places = scalar_aval(dtype::i32);
    places.rank = 1;
    places.dims[0].extent = devices_along(axes, mesh());
    const int all = emit(op::iota, places, {}, {0});
    places.dims[0].extent = 1;
    places.varying = set_of(axes);
    const int mine = emit(op::local_slice, places, {all}, {axes, 0});
    places.rank = 0;
    places.dims[0] = {};
    return emit(op::reshape, places, {mine}, {});
  }

  /// A part of a pending sum from each device along axes that were none: all of it on the first, zeros on the others.
  constexpr form keep_first(form from, const aval& wanted) {
    const auto more = static_cast<axis_set>(wanted.unreduced & ~(from.type.unreduced | from.type.cut()));
    if (more == 0) return from;
    axis_list axes = 0;
    for (int i = 0; i < mesh().rank; ++i)
      if (more & bit_of(i)) axes = axis_append(axes, i);
    from.type.unreduced = static_cast<axis_set>(from.type.unreduced | more);
    aval first = scalar_aval(dtype::bool_);
    first.varying = more;
    const int place = place_along(axes);
    const int is_first = emit(op::eq, first, {place, constant(dtype::i32, 0)}, {});
    from.local =
        emit(op::select, block(from.type, from.local), {is_first, from.local, constant(from.type.type, 0)}, {});
    return from;
  }

  /// A part of a pending sum from each device along the last axes that cut a dimension: its block where that belongs,
  /// zeros elsewhere. In three dimensions: before, blocks side by side, within a block.
  constexpr form fill_with_zeros(form from, const aval& wanted) {
    for (int d = 0; d < from.type.rank; ++d) {
      const axis_list cut = from.type.dims[d].axes;
      const int count = tail_within(cut, wanted.unreduced);
      if (count == 0) continue;
      const axis_list kept = first_axes(cut, axis_count(cut) - count);
      const axis_list filled = without_head(cut, kept);
      aval part = result.type(from.local);
      std::int64_t before = 1;
      for (int i = 0; i < d; ++i) before *= part.dims[i].extent;
      const std::int64_t within = before == 0 ? 0 : part.size() / before;
      for (dim& each : part.dims) each = {};
      part.rank = 3;
      part.dims[0].extent = before;
      part.dims[1].extent = 1;
      part.dims[2].extent = within;
      aval whole = part;
      whole.dims[1].extent = devices_along(filled, mesh());
      aval positions = whole;
      positions.type = dtype::i32;
      positions.varying = 0;
      aval chosen = whole;
      chosen.type = dtype::bool_;
      const int folded = emit(op::reshape, part, {from.local}, {});
      const int wide = emit(op::broadcast, whole, {folded}, {graph::dims_in_order(3)});
      const int position = emit(op::iota, positions, {}, {1});
      const int mine = emit(op::eq, chosen, {position, place_along(filled)}, {});
      const int sum = emit(op::select, whole, {mine, wide, constant(from.type.type, 0)}, {});
      from.type.dims[d].axes = kept;
      from.type.unreduced = static_cast<axis_set>(from.type.unreduced | set_of(filled));
      from.local = emit(op::reshape, block(from.type, from.local), {sum}, {});
      break;
    }
    return from;
  }

  /// A local slice for a dimension that `wanted` cuts further by axes that are free.
  constexpr form slice_towards(form from, const aval& wanted) {
    const auto taken = static_cast<axis_set>(from.type.cut() | from.type.unreduced);
    for (int d = 0; d < from.type.rank; ++d) {
      if (!starts_with(wanted.dims[d].axes, from.type.dims[d].axes)) continue;
      const axis_list sliced = next_axes(from.type.dims[d].axes, wanted.dims[d].axes, static_cast<axis_set>(~taken));
      if (sliced == 0) continue;
      from.type.dims[d].axes = axis_concat(from.type.dims[d].axes, sliced);
      from.local =
          emit(op::local_slice, block(from.type, from.local), {from.local}, {sliced, static_cast<std::uint64_t>(d)});
      break;
    }
    return from;
  }

  /// A permutation of whole blocks, if that is all it takes.
  constexpr form permute_blocks(form from, const aval& wanted) {
    bool differs = false;
    for (int d = 0; d < from.type.rank; ++d) {
      if (devices_along(from.type.dims[d].axes, mesh()) != devices_along(wanted.dims[d].axes, mesh())) return from;
      differs = differs || from.type.dims[d].axes != wanted.dims[d].axes;
    }
    if (!differs) return from;
    const axis_list source = all_axes(from.type);
    for (int d = 0; d < from.type.rank; ++d) from.type.dims[d].axes = wanted.dims[d].axes;
    from.local = emit(op::permute, block(from.type, from.local), {from.local}, {source, all_axes(from.type)});
    return from;
  }

  /// An all-to-all that takes the last axes of one dimension to another one, where `wanted` has them next.
  constexpr form exchange(form from, const aval& wanted) {
    for (int d = 0; d < from.type.rank; ++d)
      for (int e = 0; e < from.type.rank; ++e) {
        const axis_list there = from.type.dims[e].axes;
        if (e == d || !starts_with(wanted.dims[e].axes, there)) continue;
        const axis_list next = without_head(wanted.dims[e].axes, there);
        const int count = axis_count(from.type.dims[d].axes);
        for (int kept = 0; kept < count; ++kept) {
          const axis_list head = first_axes(from.type.dims[d].axes, kept);
          const axis_list moved = without_head(from.type.dims[d].axes, head);
          if (!starts_with(next, moved)) continue;
          from.type.dims[d].axes = head;
          from.type.dims[e].axes = axis_concat(there, moved);
          from.local = emit(op::all_to_all, block(from.type, from.local), {from.local},
                            {moved, static_cast<std::uint64_t>(e), static_cast<std::uint64_t>(d)});
          return from;
        }
      }
    return from;
  }

  constexpr form gather_last(form from, int d, int count) {
    const axis_list whole = from.type.dims[d].axes;
    from.type.dims[d].axes = first_axes(whole, axis_count(whole) - count);
    const axis_list gathered = without_head(whole, from.type.dims[d].axes);
    from.local =
        emit(op::all_gather, block(from.type, from.local), {from.local}, {gathered, static_cast<std::uint64_t>(d)});
    return from;
  }

  /// An all-gather of the last axes of a dimension, those that `wanted` has nowhere.
  constexpr form gather_unwanted(form from, const aval& wanted) {
    const auto unwanted = static_cast<axis_set>(~wanted.cut());
    for (int d = 0; d < from.type.rank; ++d)
      if (const int last = tail_within(from.type.dims[d].axes, unwanted); last > 0) return gather_last(from, d, last);
    return from;
  }

  /// The axes of a dimension in the order in which they can leave it: those that stay, those that go nowhere, the rest.
  static constexpr axis_list departure_order(axis_list now, axis_list stays, axis_set wanted) {
    const axis_set here = set_of(now);
    axis_list order = 0;
    for (int i = 0; i < axis_count(stays) && (here & bit_of(axis_at(stays, i))); ++i)
      order = axis_append(order, axis_at(stays, i));
    for (const bool leaves : {false, true})
      for (int i = 0; i < axis_count(now); ++i) {
        const int axis = axis_at(now, i);
        const bool placed = (set_of(order) & bit_of(axis)) != 0;
        if (!placed && ((wanted & bit_of(axis)) != 0) == leaves) order = axis_append(order, axis);
      }
    return order;
  }

  constexpr form reorder(form from, const aval& wanted) {
    aval ordered = from.type;
    for (int d = 0; d < ordered.rank; ++d)
      ordered.dims[d].axes = departure_order(ordered.dims[d].axes, wanted.dims[d].axes, wanted.cut());
    return permute_blocks(from, ordered);
  }

  /// Where dimensions wait for each other: an all-gather along the shortest axis that is in the way.
  constexpr form gather_shortest(form from, const aval& wanted) {
    int shortest = -1;
    const auto last = [&](int d) { return axis_at(from.type.dims[d].axes, axis_count(from.type.dims[d].axes) - 1); };
    for (int d = 0; d < from.type.rank; ++d)
      if (!starts_with(wanted.dims[d].axes, from.type.dims[d].axes) &&
          (shortest < 0 || mesh().size(last(d)) < mesh().size(last(shortest))))
        shortest = d;
    return shortest < 0 ? from : gather_last(from, shortest, 1);
  }

  /// Takes `from` to the cuts and unreduced axes of `wanted`; calls made(form) for every form on the way. What can be
  /// sliced is sliced first and what must grow grows last, so blocks are small while they travel: it never moves more
  /// than gathering what differs and slicing would, and where one collective is enough, one is used.
  constexpr form move(form from, const aval& wanted, auto&& made) {
    const auto advance = [&](const form& to) {
      if (to.local == from.local) return false;
      from = to;
      made(from);
      return true;
    };
    while (advance(slice_towards(from, wanted)) || advance(scatter_pending(from, wanted))) {
    }
    advance(reduce_pending(from, wanted));
    while (advance(slice_towards(from, wanted)) || advance(fill_with_zeros(from, wanted)) ||
           advance(permute_blocks(from, wanted)) || advance(exchange(from, wanted)) ||
           advance(gather_unwanted(from, wanted)) || advance(reorder(from, wanted)) ||
           advance(gather_shortest(from, wanted))) {
    }
    advance(keep_first(from, wanted));
    return from;
  }
};

}  // namespace tessera::transform
