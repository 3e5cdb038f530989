// SPDX-License-Identifier: Apache-2.0
// The ways in which a global value lies on the devices, and how to get from one of them to another.
#pragma once

#include <tessera/graph/graph.hpp>

#include <initializer_list>

namespace tessera::transform {

using graph::op;

/// How partial results combine; the second attribute of an all_reduce, the third of a reduce_scatter.
enum class combine : std::uint8_t { sum, max, min, prod };

constexpr combine combine_of(op reduction) {
  switch (reduction) {
    case op::reduce_max: return combine::max;
    case op::reduce_min: return combine::min;
    case op::reduce_prod: return combine::prod;
    default: return combine::sum;
  }
}

/// One way a global value exists on the devices: its cuts and pending axes, and the local node that holds the block.
struct form {
  aval type{};
  combine pending = combine::sum;
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

  /// A reduce-scatter for a dimension that `wanted` cuts further by axes that are pending.
  constexpr form scatter_pending(form from, const aval& wanted) {
    for (int d = 0; d < from.type.rank; ++d) {
      if (!starts_with(wanted.dims[d].axes, from.type.dims[d].axes)) continue;
      const axis_list extra = without_head(wanted.dims[d].axes, from.type.dims[d].axes);
      if (extra == 0 || (set_of(extra) & ~from.type.unreduced) != 0) continue;
      from.type.dims[d].axes = wanted.dims[d].axes;
      from.type.unreduced = static_cast<axis_set>(from.type.unreduced & ~set_of(extra));
      from.local = emit(op::reduce_scatter, block(from.type, from.local), {from.local},
                        {extra, static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(from.pending)});
      break;
    }
    return from;
  }

  /// An all-reduce over all axes that are still pending.
  constexpr form reduce_pending(form from) {
    if (from.type.unreduced == 0) return from;
    const axis_set pending = from.type.unreduced;
    from.type.unreduced = 0;
    from.local = emit(op::all_reduce, block(from.type, from.local), {from.local},
                      {pending, static_cast<std::uint64_t>(from.pending)});
    return from;
  }

  /// A local slice for a dimension that `wanted` cuts further by axes that are free.
  constexpr form slice_towards(form from, const aval& wanted) {
    const auto taken = static_cast<axis_set>(from.type.cut() | from.type.unreduced);
    for (int d = 0; d < from.type.rank; ++d) {
      if (!starts_with(wanted.dims[d].axes, from.type.dims[d].axes)) continue;
      const axis_list extra = without_head(wanted.dims[d].axes, from.type.dims[d].axes);
      int free = 0;
      while (free < axis_count(extra) && !(taken & bit_of(axis_at(extra, free)))) ++free;
      if (free == 0) continue;
      const axis_list sliced = first_axes(extra, free);
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

  /// Takes `from` to the cuts of `wanted`; calls made(form) for every form on the way. What can be sliced is sliced first
  /// and what must grow grows last, so blocks are small while they travel: it never moves more than gathering what
  /// differs and slicing would, and where one collective is enough, one is used.
  constexpr form move(form from, const aval& wanted, auto&& made) {
    const auto advance = [&](const form& to) {
      if (to.local == from.local) return false;
      from = to;
      made(from);
      return true;
    };
    while (advance(slice_towards(from, wanted)) || advance(scatter_pending(from, wanted))) {
    }
    advance(reduce_pending(from));
    while (advance(slice_towards(from, wanted)) || advance(permute_blocks(from, wanted)) ||
           advance(exchange(from, wanted)) || advance(gather_unwanted(from, wanted)) ||
           advance(reorder(from, wanted)) || advance(gather_shortest(from, wanted))) {
    }
    return from;
  }
};

}  // namespace tessera::transform
