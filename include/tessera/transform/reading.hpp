// SPDX-License-Identifier: Apache-2.0
// Ways of reading: nodes that are computed nowhere, since kernels reach the elements of their operand directly.
#pragma once

#include <tessera/graph/graph.hpp>
#include <tessera/graph/layout.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/graph/windows.hpp>

namespace tessera::transform {

using graph::op;

/// Whether the node only says how another one is read. Transposes and local slices are read by their own copy alone.
constexpr bool is_way_of_reading(op code) {
  return code == op::broadcast || code == op::transpose || code == op::local_slice || code == op::slice ||
         code == op::windows;
}

constexpr bool is_unstored(const graph::graph& g, int id);

/// Whether the elements that `taken` names lie side by side in an array of type `whole`.
constexpr bool lies_together(const aval& whole, const sharding::slices& taken) {
  bool one_so_far = true;
  for (int d = 0; d < whole.rank; ++d) {
    if (!taken.of[d].is_all_of(whole.dims[d].extent) && (!one_so_far || taken.of[d].stride != 1)) return false;
    one_so_far &= taken.of[d].count == 1;
  }
  return true;
}

/// Elements in front of the first one that `taken` names.
constexpr std::int64_t offset_in(const aval& whole, const sharding::slices& taken) {
  std::int64_t offset = 0;
  for (int d = 0; d < whole.rank; ++d) offset = offset * whole.dims[d].extent + taken.of[d].start;
  return offset;
}

/// Whether `id` is a slice whose elements lie side by side in memory that its operand has: then it is a part of that.
constexpr bool is_part(const graph::graph& g, int id) {
  const graph::node& n = g.at(id);
  return n.code == op::slice && lies_together(g.type(n.operands[0]), graph::slices_of(n, n.type)) &&
         !is_unstored(g, n.operands[0]);
}

/// Whether no memory holds `id`: a rule for elements, or a way of reading, views of either included.
constexpr bool is_unstored(const graph::graph& g, int id) {
  for (;; id = g.at(id).operands[0]) {
    const op code = g.at(id).code;
    if (code == op::constant || code == op::iota || code == op::broadcast || code == op::windows || code == op::empty)
      return true;
    if (code == op::slice) return !is_part(g, id);
    if (code != op::reshape && code != op::local_slice) return false;
  }
}

/// Whether a read of `id` ends at positions instead of memory.
constexpr bool counts_positions(const graph::graph& g, int id) {
  while (g.at(id).operand_count() > 0 && (is_way_of_reading(g.at(id).code) || g.at(id).code == op::reshape))
    id = g.at(id).operands[0];
  return g.at(id).code == op::iota;
}

/// How positions of a kernel's domain become those of a node: along its dimension j it is base[j] plus step[d] times
/// the position along each domain dimension d with place[d] == j.
struct reading {
  int rank = 0;  ///< of the domain
  int place[max_rank]{};
  std::int64_t step[max_rank]{};
  std::int64_t base[max_rank]{};
  axis_list slice_axes = 0;
  int slice_dim = -1;
  std::int64_t slice_extent = 0;

  /// Of a node that has the domain's dimensions; one of extent 1 is repeated.
  constexpr reading(const aval& type, const aval& domain) : rank(domain.rank) {
    for (int d = 0; d < rank; ++d) {
      place[d] = type.rank > 0 && type.dims[d].extent == domain.dims[d].extent ? d : -1;
      step[d] = 1;
    }
  }

  /// Node dimension `from[j]` becomes dimension j of its operand, all others vanish.
  constexpr void rename(const int (&from)[max_rank], int operand_rank) {
    std::int64_t old_base[max_rank]{};
    for (int j = 0; j < max_rank; ++j) old_base[j] = base[j];
    for (int j = 0; j < max_rank; ++j) base[j] = j < operand_rank && from[j] >= 0 ? old_base[from[j]] : 0;
    for (int d = 0; d < rank; ++d) {
      int found = -1;
      for (int j = 0; j < operand_rank; ++j)
        if (place[d] >= 0 && from[j] == place[d]) found = j;
      place[d] = found;
    }
  }

  constexpr void through_broadcast(const graph::node& n, const aval& operand) {
    int from[max_rank]{};
    for (int j = 0; j < operand.rank; ++j) {
      from[j] = sharding::dim_at(n.attribute[0], j);
      if (operand.dims[j].extent != n.type.dims[from[j]].extent) from[j] = -1;
    }
    rename(from, operand.rank);
  }

  constexpr void through_transpose(const graph::node& n) {
    int from[max_rank]{};
    for (int i = 0; i < n.type.rank; ++i) from[sharding::dim_at(n.attribute[0], i)] = i;
    rename(from, n.type.rank);
  }

  /// A reshape that only adds or drops dimensions of extent 1.
  constexpr void through_ones(const aval& type, const aval& operand) {
    int from[max_rank]{};
    int i = 0;
    for (int j = 0; j < operand.rank; ++j) {
      from[j] = -1;
      if (operand.dims[j].extent == 1) continue;
      while (type.dims[i].extent == 1) ++i;
      from[j] = i++;
    }
    rename(from, operand.rank);
  }

  constexpr void through_slice(const graph::node& n) {
    const sharding::slices taken = graph::slices_of(n, n.type);
    for (int j = 0; j < n.type.rank; ++j) base[j] = taken.of[j].start + taken.of[j].stride * base[j];
    for (int d = 0; d < rank; ++d)
      if (place[d] >= 0) step[d] *= taken.of[place[d]].stride;
  }

  /// Positions of a window and within it add up to one of the array.
  constexpr void through_windows(const graph::node& n, const aval& operand) {
    const graph::window_dims dims(n, operand.rank);
    std::int64_t old_base[max_rank]{};
    for (int j = 0; j < max_rank; ++j) old_base[j] = base[j], base[j] = 0;
    for (int j = 0; j < n.type.rank; ++j) base[dims.of_operand[j]] += dims.step[j] * old_base[j];
    for (int d = 0; d < rank; ++d) {
      if (place[d] < 0) continue;
      step[d] *= dims.step[place[d]];
      place[d] = dims.of_operand[place[d]];
    }
  }

  constexpr void through_local_slice(const graph::node& n) {
    slice_axes = static_cast<axis_list>(n.attribute[0]);
    slice_dim = static_cast<int>(n.attribute[1]);
    slice_extent = n.type.dims[slice_dim].extent;
  }

  /// The access, given the strides of the memory, or of the count, at the end.
  constexpr graph::access over(const std::int64_t (&strides)[max_rank], int buffer) const {
    graph::access a{buffer};
    for (int d = 0; d < rank; ++d)
      if (place[d] >= 0) a.strides[d] = step[d] * strides[place[d]];
    for (int j = 0; j < max_rank; ++j) a.offset += base[j] * strides[j];
    a.slice_axes = slice_axes;
    if (slice_dim >= 0) a.slice_stride = slice_extent * strides[slice_dim];
    return a;
  }
};

/// The node at the end of a read of `id` over `domain`; `how` says where its elements stand.
constexpr int read_through(const graph::graph& g, int id, reading& how) {
  for (;; id = g.at(id).operands[0]) {
    const graph::node& n = g.at(id);
    switch (n.code) {
      case op::broadcast: how.through_broadcast(n, g.type(n.operands[0])); break;
      case op::transpose: how.through_transpose(n); break;
      case op::slice: how.through_slice(n); break;
      case op::windows: how.through_windows(n, g.type(n.operands[0])); break;
      case op::local_slice: how.through_local_slice(n); break;
      case op::reshape:
        if (!is_unstored(g, n.operands[0])) return id;
        how.through_ones(n.type, g.type(n.operands[0]));
        break;
      default: return id;
    }
  }
}

/// Row-major strides in elements.
constexpr void row_major(const aval& type, std::int64_t (&strides)[max_rank]) {
  std::int64_t stride = 1;
  for (int d = type.rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= type.dims[d].extent;
  }
}

}  // namespace tessera::transform
