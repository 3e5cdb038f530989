// SPDX-License-Identifier: Apache-2.0
// Which steps work row by row, and how many elements of a row each of their accesses reaches.
#pragma once

#include <tessera/graph/program.hpp>

#include <algorithm>

namespace tessera::transform {

/// A step seen as work on `rows` rows.
struct row_form {
  bool fits = false;
  bool sums = false;          ///< over the rows: of a batch (a dot), or all (a reduction)
  std::int64_t batch = 0;     ///< no block of rows may cross a multiple of it
  std::int64_t elements = 0;  ///< of a fused step: a row of its domain
};

/// The longest side of a matrix that a product shares between the rows of a batch may be longer than this, the other
/// one not: keys and values of a head of attention.
inline constexpr std::int64_t light_side = 128;

/// Products sum over rows of a batch one block after the other: only where there are several batches to share out.
inline constexpr std::int64_t fewest_summed_batches = 4;

constexpr bool is_rows_kernel(graph::step_kind kind) {
  return kind == graph::step_kind::softmax || kind == graph::step_kind::log_softmax ||
         kind == graph::step_kind::softmax_grad || kind == graph::step_kind::log_softmax_grad;
}

constexpr std::int64_t domain_of(const graph::step& s) {
  std::int64_t size = 1;
  for (int d = 0; d < s.rank; ++d) size *= s.sizes[d];
  return size;
}

/// How many rows a step works on by itself, or 0 if it has none: of a softmax, of a reduction along the last dimension.
constexpr std::int64_t own_rows(const graph::step& s) {
  if (is_rows_kernel(s.kind)) return s.sizes[0];
  if (s.kind == graph::step_kind::reduce && s.sizes[3] == 1) return s.sizes[1];
  return 0;
}

/// A fused step's blocks of rows are parts of one line of its last dimension, or whole lines.
constexpr row_form fused_form(const graph::step& s, std::int64_t rows) {
  const std::int64_t size = domain_of(s);
  if (s.rank == 0 || size % rows != 0 || size == 0) return {};
  const std::int64_t elements = size / rows;
  const std::int64_t line = s.sizes[s.rank - 1];
  if (s.rank == 1 || elements % line == 0) return {true, false, rows, elements};
  return {line % elements == 0, false, line / elements, elements};
}

/// A product of few columns makes rows from rows, or sums over them. `sums`: which of the two is looked for.
constexpr row_form dot_form(const graph::program& p, const graph::step& s, std::int64_t rows, bool sums) {
  const std::int64_t m = s.sizes[0], n = s.sizes[1], k = s.sizes[2], groups = s.sizes[3];
  const dtype type = p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(s.first)].buffer)].type;
  if (s.axes != 0 || s.sources != 2 || s.results != 1 || (type != dtype::f32 && type != dtype::f64)) return {};
  if (sums) {
    const bool fits = groups >= fewest_summed_batches && k * groups == rows && std::min(m, n) <= light_side &&
                      (s.sizes[4] || !s.sizes[5]);
    return {fits, true, k, 0};
  }
  return {groups > 1 && m * groups == rows && s.sizes[4] == 0 && std::min(n, k) <= light_side, false, m, 0};
}

constexpr row_form form_of(const graph::program& p, const graph::step& s, std::int64_t rows, bool sums) {
  if (s.kind == graph::step_kind::fused) return fused_form(s, rows);
  if (s.kind == graph::step_kind::dot) return dot_form(p, s, rows, sums);
  if (sums)
    return {s.kind == graph::step_kind::reduce && s.sizes[1] == 1 && s.sizes[2] == rows && s.sizes[3] > 1, true, rows,
            0};
  return {own_rows(s) == rows, false, rows, 0};
}

/// The elements of a row that access `a` of a fused step reaches, where each row has its own, side by side; else 0.
constexpr std::int64_t fused_row_elements(const graph::program& p, const graph::step& s, int a, std::int64_t rows) {
  const graph::access& way = p.accesses[static_cast<std::size_t>(a)];
  if (way.buffer < 0 || way.offset < 0 || way.slice_axes != 0) return 0;
  const graph::buffer& b = p.buffers[static_cast<std::size_t>(way.buffer)];
  const std::int64_t all = b.bytes / info(b.type).size;
  std::int64_t step = 1;
  bool contiguous = true;
  for (int d = s.rank - 1; d >= 0; step *= s.sizes[d--]) contiguous &= way.strides[d] == step;
  if (contiguous && all == step && way.offset == 0) return all / rows;
  int split = 0;
  std::int64_t before = 1;
  while (split < s.rank && before < rows) before *= s.sizes[split++];
  if (before != rows || all % rows != 0) return 0;
  const std::int64_t elements = all / rows;
  std::int64_t expected = elements;
  for (int d = split - 1; d >= 0; expected *= s.sizes[d--])
    if (way.strides[d] != expected) return 0;
  std::int64_t reached = way.offset;
  for (int d = split; d < s.rank; ++d) {
    if (way.strides[d] < 0) return 0;
    reached += (s.sizes[d] - 1) * way.strides[d];
  }
  return reached < elements ? elements : 0;
}

/// The elements of a row that access `a` of a step of this form reaches, where each row has its own; else 0.
constexpr std::int64_t row_elements(const graph::program& p, const graph::step& s, int a, std::int64_t rows,
                                    bool sums) {
  const int place = a - s.first;
  switch (s.kind) {
    case graph::step_kind::fused: return fused_row_elements(p, s, a, rows);
    case graph::step_kind::dot:
      if (graph::lies_scattered(p.accesses[static_cast<std::size_t>(a)])) return 0;
      if (sums) return place == 0 && s.sizes[4] ? s.sizes[0] : place == 1 && !s.sizes[5] ? s.sizes[1] : 0;
      return place == 0 ? s.sizes[2] : place == 2 ? s.sizes[1] : 0;
    case graph::step_kind::reduce:
      if (sums) return place == 0 ? s.sizes[3] : 0;
      return place == 0 ? s.sizes[2] : 1;
    default: return s.sizes[1];
  }
}

}  // namespace tessera::transform
