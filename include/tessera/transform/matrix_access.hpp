// SPDX-License-Identifier: Apache-2.0
// How a product reaches its matrices in memory, and what that becomes when the array they lie in was copied from
// another.
#pragma once

#include <tessera/graph/program.hpp>

namespace tessera::transform {

/// A nest of loops over an array, outer ones first. Each dimension has a role, by which it is known when it is cut in
/// two.
struct walk {
  static constexpr int most = 2 * max_rank;
  int rank = 0;
  std::int64_t extent[most]{};
  std::int64_t stride[most]{};
  int role[most]{};
  std::int64_t offset = 0;
  bool possible = true;

  constexpr void add(std::int64_t size, std::int64_t step, int as) {
    if (size == 1) return;
    if (rank > 0 && role[rank - 1] == as && stride[rank - 1] == step * size) {
      extent[rank - 1] *= size;
      stride[rank - 1] = step;
      return;
    }
    if (rank == most) {
      possible = false;
      return;
    }
    extent[rank] = size, stride[rank] = step, role[rank++] = as;
  }

  /// The dimensions of a role, which are found from the inner one outwards; the inner one is number 0.
  constexpr int count(int as) const {
    int n = 0;
    for (int d = 0; d < rank; ++d) n += role[d] == as;
    return n;
  }
  constexpr int find(int as, int number) const {
    for (int d = rank - 1; d >= 0; --d)
      if (role[d] == as && number-- == 0) return d;
    return -1;
  }
};

/// Where elements of an array lie: those of a row-major domain, `strides` apart.
struct placed_domain {
  int rank = 0;
  std::int64_t extents[max_rank]{};
  std::int64_t strides[max_rank]{};
  std::int64_t offset = 0;
};

/// Cuts the loop of `n` steps of `step` elements of the domain into parts that stay within one dimension each.
constexpr void add_parts(const placed_domain& to, const std::int64_t (&row_major)[max_rank], std::int64_t n,
                         std::int64_t step, int role, std::int64_t (&highest)[max_rank], walk& out) {
  std::int64_t extents[max_rank]{};
  std::int64_t strides[max_rank]{};
  int parts = 0, d = 0;
  while (d < to.rank && row_major[d] > step) ++d;
  for (; d >= 0 && d < to.rank && step % row_major[d] == 0; --d) {
    const std::int64_t pace = step / row_major[d];
    const bool whole = pace * (n - 1) < to.extents[d];
    if (!whole && (to.extents[d] % pace != 0 || n % (to.extents[d] / pace) != 0)) break;
    const std::int64_t here = whole ? n : to.extents[d] / pace;
    extents[parts] = here, strides[parts++] = pace * to.strides[d];
    highest[d] += pace * (here - 1);
    n /= here;
    if (n == 1) break;
    step = row_major[d] * to.extents[d];
  }
  out.possible &= n == 1;
  for (int part = parts - 1; part >= 0; --part) out.add(extents[part], strides[part], role);
}

/// A walk over the elements of a domain as one over the memory they lie in.
constexpr walk carried_over(const walk& over, const placed_domain& to) {
  std::int64_t row_major[max_rank]{};
  std::int64_t highest[max_rank]{};
  std::int64_t size = 1, rest = over.offset;
  for (int d = to.rank - 1; d >= 0; size *= to.extents[d--]) row_major[d] = size;
  walk out;
  out.offset = to.offset;
  out.possible = over.possible && rest >= 0 && rest < size;
  for (int d = 0; d < to.rank; rest %= row_major[d++]) {
    highest[d] = rest / row_major[d];
    out.offset += highest[d] * to.strides[d];
  }
  for (int d = 0; d < over.rank && out.possible; ++d) {
    if (over.stride[d] == 0) out.add(over.extent[d], 0, over.role[d]);
    else if (over.stride[d] < 0) out.possible = false;
    else add_parts(to, row_major, over.extent[d], over.stride[d], over.role[d], highest, out);
  }
  for (int d = 0; d < to.rank; ++d) out.possible &= highest[d] < to.extents[d];
  return out;
}

/// Roles of the dimensions of a product's matrices.
enum matrix_role : int { of_group, of_row, of_column };

/// Rows and columns of operand 0 or 1 of a product, or of its result (2), as they are stored.
struct matrix_shape {
  std::int64_t rows, columns;

  constexpr matrix_shape(const graph::step& s, int place)
      : rows(place == 0   ? s.sizes[s.sizes[4] != 0 ? 2 : 0]
             : place == 1 ? s.sizes[s.sizes[5] != 0 ? 1 : 2]
                          : s.sizes[0]),
        columns(place == 0 ? s.sizes[s.sizes[4] != 0 ? 0 : 2] : s.sizes[place == 1 && s.sizes[5] != 0 ? 2 : 1]) {}
};

constexpr walk walk_of(const graph::step& s, const graph::access& a, int place) {
  const matrix_shape shape(s, place);
  walk made;
  made.offset = a.offset;
  if (graph::lies_scattered(a)) {
    made.add(s.sizes[3] / a.strides[graph::matrices_in_line], a.strides[graph::line_distance], of_group);
    made.add(a.strides[graph::matrices_in_line], a.strides[graph::matrix_distance], of_group);
  } else {
    made.add(s.sizes[3], shape.rows * shape.columns, of_group);
  }
  made.add(shape.rows, graph::lies_scattered(a) ? a.strides[graph::row_distance] : shape.columns, of_row);
  made.add(shape.columns, 1, of_column);
  return made;
}

/// Writes into `a` how a product reaches matrices by this walk; false, and no change, where it cannot.
constexpr bool set_walk(const graph::step& s, const walk& by, int place, graph::access& a) {
  const matrix_shape shape(s, place);
  if (!by.possible || by.count(of_group) > 2 || by.count(of_row) > 1 || by.count(of_column) > 1) return false;
  const auto distance = [&](int role, int number) {
    const int d = by.find(role, number);
    return d < 0 ? std::int64_t{0} : by.stride[d];
  };
  const std::int64_t rows_apart = shape.rows == 1 ? shape.columns : distance(of_row, 0);
  if ((shape.columns > 1 && distance(of_column, 0) != 1) || rows_apart < shape.columns) return false;
  const int inner = by.find(of_group, 0);
  a.offset = by.offset;
  a.strides[graph::row_distance] = rows_apart;
  a.strides[graph::matrix_distance] = distance(of_group, 0);
  a.strides[graph::line_distance] = distance(of_group, 1);
  a.strides[graph::matrices_in_line] = inner < 0 ? 1 : by.extent[inner];
  return true;
}

}  // namespace tessera::transform
