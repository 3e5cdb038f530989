// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication, alone or in groups: batched, with a shared right operand, or summed over the groups.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tessera/kernels/detail/gemm_pack.hpp>
#include <tessera/kernels/detail/gemm_tile.hpp>
#include <tessera/kernels/detail/gemm_tiles.hpp>
#include <tessera/kernels/detail/workspace.hpp>
#include <tessera/kernels/gemm_problem.hpp>
#include <tessera/kernels/parallel.hpp>

namespace tessera::kernels {

namespace detail {

/// The depth is summed in blocks of at most this many steps, so that a block of tile_columns of B stays in a 48 KiB
/// cache. It is the same for every type and instruction set, because it fixes the order of summation.
inline constexpr std::int64_t gemm_depth = 256;

template <class T>
inline constexpr std::int64_t packed_a_size = (std::int64_t{1} << 18) / static_cast<std::int64_t>(sizeof(compute_t<T>));

template <class T>
inline constexpr std::int64_t packed_b_size = (std::int64_t{3} << 19) / static_cast<std::int64_t>(sizeof(compute_t<T>));

/// Elements of C in the second cache when work on finished ones begins.
inline constexpr std::int64_t finish_at_once = std::int64_t{1} << 16;

/// The i-th of `parts` nearly equal parts of [0, n) starts here; the part after the last starts at n.
constexpr std::int64_t part(std::int64_t n, std::int64_t parts, std::int64_t i) {
  return i * (n / parts) + std::min(i, n % parts);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A rectangle of tiles: row panels x column panels of one batch entry.
struct gemm_region {
  std::int64_t batch, row_begin, row_end, column_begin, column_end;
};

/// A problem with its groups resolved into three axes (at most one is longer than 1): entries of a batch, groups
/// stacked along the rows because they share B, groups stacked along the depth because they share C. Rows are cut into
/// panels of at most tile_rows, columns into panels of tile_columns; a panel of rows never crosses a group.
template <class T>
class gemm_run {
 public:
  using packed = compute_t<T>;

  explicit gemm_run(const gemm_problem<T>& problem)
      : p_(problem),
        a_(left_side(problem)),
        b_(right_side(problem)),
        depth_groups_(problem.c_stride == 0 ? problem.groups : 1),
        row_groups_(problem.b_stride == 0 && problem.c_stride != 0 ? problem.groups : 1),
        batches_(problem.groups / (depth_groups_ * row_groups_)),
        panels_(ceil_div(problem.m, tile_rows<T>)),
        depth_(problem.k * depth_groups_) {}

  std::int64_t batches() const { return batches_; }
  std::int64_t row_panels() const { return panels_ * row_groups_; }
  std::int64_t column_panels() const { return ceil_div(p_.n, tile_columns<T>); }

  /// Computes a region of C on this thread. Every element is the sum over depth blocks, in order, of sums over depth
  /// steps, in order: neither the region nor the panel it falls into changes its bits.
  void operator()(const gemm_region& region) const {
    if (region.row_begin == region.row_end) return;
    auto* const packed_a = reinterpret_cast<packed*>(workspace());
    packed* const packed_b = packed_a + packed_a_size<T>;
    const std::int64_t blocks = ceil_div(depth_, gemm_depth);
    const std::int64_t longest = ceil_div(depth_, blocks);
    const std::int64_t columns = (packed_b_size<T> - width<T>) / (longest * tile_columns<T>);
    const std::int64_t column_blocks = ceil_div(region.column_end - region.column_begin, columns);
    for (std::int64_t j = 0; j < column_blocks; ++j)
      for (std::int64_t d = 0; d < blocks; ++d) {
        gemm_region strip = region;
        strip.column_begin += part(region.column_end - region.column_begin, column_blocks, j);
        strip.column_end = region.column_begin + part(region.column_end - region.column_begin, column_blocks, j + 1);
        const std::int64_t start = part(depth_, blocks, d);
        multiply_strip(strip, start, part(depth_, blocks, d + 1) - start, packed_a, packed_b);
      }
  }

 private:
  /// Blocks of C with finishing work are not higher, so that their rows are long.
  static constexpr std::int64_t finished_rows = 252;

  /// Up to this many panels of rows, packing B costs more than reading it where it is.
  static constexpr std::int64_t few_panels = 4;

  std::int64_t panel_row(std::int64_t panel) const { return part(p_.m, panels_, panel); }

  /// A panel that is to be packed: its lines within a group, and where they go.
  struct destination {
    std::int64_t line, lines;
    packed* to;
    std::int64_t step;
  };

  /// Calls f(group, first, steps, done) for the parts of [start, start + depth) that lie in one group each.
  template <class F>
  void for_each_part(std::int64_t start, std::int64_t depth, F&& f) const {
    for (std::int64_t done = 0; done < depth;) {
      const std::int64_t first = (start + done) % p_.k;
      const std::int64_t steps = std::min(depth - done, p_.k - first);
      f((start + done) / p_.k, first, steps, done);
      done += steps;
    }
  }

  /// Packs panels [first, last), neighbours in one group, of the steps [start, start + depth), by way of the staging
  /// memory where they have to be made.
  template <class Panel>
  void pack_panels(const gemm_side<T>& side, std::int64_t group, Panel panel, std::int64_t first, std::int64_t last,
                   std::int64_t start, std::int64_t depth) const {
    const std::int64_t line = panel(first).line;
    const std::int64_t lines = panel(last - 1).line + panel(last - 1).lines - line;
    T* const staged = side.source ? staging<T>() : nullptr;
    if (side.source)
      for_each_part(start, depth, [&](std::int64_t g, std::int64_t within, std::int64_t steps, std::int64_t done) {
        side.make(group + g, line, lines, within, steps, staged + done * lines);
      });
    for (std::int64_t q = first; q < last; ++q)
      for_each_part(start, depth, [&](std::int64_t g, std::int64_t within, std::int64_t steps, std::int64_t done) {
        const destination d = panel(q);
        packed* const to = d.to + done * d.step;
        if (side.source)
          pack(side.made(staged + done * lines, lines, steps), d.line - line, d.lines, 0, steps, to, d.step);
        else pack(side.of(group + g), d.line, d.lines, within, steps, to, d.step);
      });
  }

  /// All rows of the strip times its columns of B, over the steps [start, start + depth) of the depth. B is packed a
  /// panel at a time, just before its first use, while its place in the first cache is warm; several where it is made.
  void multiply_strip(const gemm_region& strip, std::int64_t start, std::int64_t depth, packed* packed_a,
                      packed* packed_b) const {
    const std::int64_t panels = strip.row_end - strip.row_begin;
    const std::int64_t room = (packed_a_size<T> - width<T>) / (depth * tile_rows<T>);
    const std::int64_t at_once = p_.finish ? std::min(room, finished_rows / tile_rows<T>) : room;
    const std::int64_t row_blocks = ceil_div(panels, at_once);
    const std::int64_t packed_at_once = b_.source ? staged_lines<T>(depth) / tile_columns<T> : 1;
    const bool last = start + depth == depth_;
    for (std::int64_t i = 0; i < row_blocks; ++i) {
      gemm_region block = strip;
      block.row_begin = strip.row_begin + part(panels, row_blocks, i);
      block.row_end = strip.row_begin + part(panels, row_blocks, i + 1);
      pack_rows_of_a(block, start, depth, packed_a);
      std::int64_t finished = strip.column_begin;
      for (std::int64_t q = strip.column_begin; q < strip.column_end; ++q) {
        const bool keep = row_blocks > 1 || b_.source;
        packed* const panel = packed_b + (keep ? q - strip.column_begin : 0) * depth * tile_columns<T>;
        if (panels <= few_panels && readable_in_place(q)) {
          if constexpr (std::is_same_v<T, packed>)
            multiply_panel(block, q, start, depth, packed_a, b_.of(strip.batch).at(q * tile_columns<T>, start), p_.ldb);
        } else {
          if (i == 0 && (q - strip.column_begin) % packed_at_once == 0)
            pack_panels_of_b(strip.batch, q, std::min(q + packed_at_once, strip.column_end), start, depth, panel);
          multiply_panel(block, q, start, depth, packed_a, panel, padded(panel_columns(q)));
        }
        if (last && p_.finish && (q + 1 == strip.column_end || worth_finishing(block, q + 1 - finished))) {
          finish(block, finished, q + 1);
          finished = q + 1;
        }
      }
    }
  }

  static bool worth_finishing(const gemm_region& block, std::int64_t column_panels) {
    return (block.row_end - block.row_begin) * tile_rows<T> * column_panels * tile_columns<T> >= finish_at_once;
  }

  /// Tells that the block's columns in the panels [first, last) have their final values.
  void finish(const gemm_region& block, std::int64_t first, std::int64_t last) const {
    const std::int64_t column = first * tile_columns<T>;
    const std::int64_t columns = std::min(last * tile_columns<T>, p_.n) - column;
    for_each_group(block, [&](std::int64_t group, std::int64_t first_panel, std::int64_t last_panel) {
      const std::int64_t row = panel_row(first_panel);
      p_.finish.run(p_.finish.context, group, row, panel_row(last_panel) - row, column, columns);
    });
  }

  /// Calls f(group, first, last) for the panels of rows of a block, by group; [first, last) are counted in the group.
  template <class F>
  void for_each_group(const gemm_region& block, F&& f) const {
    for (std::int64_t r = block.row_begin; r < block.row_end;) {
      const std::int64_t first = r % panels_;
      const std::int64_t count = std::min(block.row_end - r, panels_ - first);
      f(block.batch + r / panels_, first, first + count);
      r += count;
    }
  }

  /// B needs no packing for few rows if its own rows are short: longer ones share cache sets and span pages.
  bool readable_in_place(std::int64_t q) const {
    constexpr std::int64_t short_row = 1024 / static_cast<std::int64_t>(sizeof(T));
    return std::is_same_v<T, packed> && !b_.source && !p_.b_transposed && p_.ldb <= short_row && depth_groups_ == 1 &&
           panel_columns(q) == tile_columns<T>;
  }

  std::int64_t panel_columns(std::int64_t q) const { return std::min(tile_columns<T>, p_.n - q * tile_columns<T>); }
  static std::int64_t padded(std::int64_t columns) { return ceil_div(columns, width<T>) * width<T>; }

  void pack_panels_of_b(std::int64_t group, std::int64_t first, std::int64_t last, std::int64_t start,
                        std::int64_t depth, packed* to) const {
    const auto panel = [&](std::int64_t q) {
      const std::int64_t columns = panel_columns(q);
      return destination{q * tile_columns<T>, columns, to + (q - first) * depth * tile_columns<T>, padded(columns)};
    };
    pack_panels(b_, group, panel, first, last, start, depth);
  }

  void pack_rows_of_a(const gemm_region& block, std::int64_t start, std::int64_t depth, packed* packed_a) const {
    const std::int64_t at_once = a_.source ? staged_lines<T>(depth) / tile_rows<T> : 1;
    packed* to = packed_a;
    for_each_group(block, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
      const auto panel = [&](std::int64_t r) {
        const std::int64_t row = panel_row(r);
        const std::int64_t rows = panel_row(r + 1) - row;
        return destination{row, rows, to + (r - first) * depth * tile_rows<T>, rows};
      };
      for (std::int64_t r = first; r < last; r += at_once)
        pack_panels(a_, group, panel, r, std::min(r + at_once, last), start, depth);
      to += (last - first) * depth * tile_rows<T>;
    });
  }

  void multiply_panel(const gemm_region& block, std::int64_t q, std::int64_t start, std::int64_t depth,
                      const packed* packed_a, const packed* panel, std::int64_t panel_step) const {
    const bool accumulate = p_.accumulate || start > 0;
    const std::int64_t columns = panel_columns(q);
    for (std::int64_t r = block.row_begin; r < block.row_end; ++r) {
      const std::int64_t row = panel_row(r % panels_);
      const std::int64_t rows = panel_row(r % panels_ + 1) - row;
      packed* const c = p_.c + (block.batch + r / panels_) * p_.c_stride + row * p_.ldc + q * tile_columns<T>;
      gemm_tile_any(rows, columns, depth, packed_a + (r - block.row_begin) * depth * tile_rows<T>, rows, panel,
                    panel_step, c, p_.ldc, accumulate);
    }
  }

  gemm_problem<T> p_;
  gemm_side<T> a_, b_;
  std::int64_t depth_groups_, row_groups_, batches_, panels_, depth_;
};

/// How many parts to cut the rows into, the columns being cut into threads / parts: the choice that keeps the longest
/// part shortest, in vector operations and in elements to pack (four elements cost about one operation).
template <class T>
std::int64_t gemm_row_parts(const gemm_run<T>& run, std::int64_t threads) {
  std::int64_t best = 1;
  std::int64_t least = INT64_MAX;
  for (std::int64_t parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const std::int64_t rows = ceil_div(run.row_panels(), parts) * tile_rows<T>;
    const std::int64_t columns = ceil_div(run.column_panels(), threads / parts) * tile_columns<T>;
    const std::int64_t cost = 4 * rows * columns / width<T> + rows + columns;
    if (cost < least) {
      least = cost;
      best = parts;
    }
  }
  return best;
}

/// What a product of depth 0 leaves in C: zeros, or C itself when accumulating.
template <class T>
void gemm_of_no_depth(const gemm_problem<T>& p) {
  for (std::int64_t g = 0; g < (p.c_stride == 0 ? 1 : p.groups); ++g) {
    for (std::int64_t i = 0; i < p.m && !p.accumulate; ++i)
      std::fill_n(p.c + g * p.c_stride + i * p.ldc, p.n, compute_t<T>{0});
    finish_in_parts(p.finish, g, 0, p.m, 0, p.n, finish_at_once);
  }
}

/// Products below this many multiplications are not worth another thread.
inline constexpr std::int64_t worth_a_thread = std::int64_t{1} << 17;

#if defined(TESSERA_HAS_AMX)

/// Group g of a problem in matrix registers.
inline tiled_product in_tiles(const gemm_problem<bfloat16>& p, std::int64_t g) {
  const bool summed = p.c_stride == 0;
  return {left_side(p),
          right_side(p),
          g,
          p.k,
          p.c + g * p.c_stride,
          p.ldc,
          p.accumulate || (summed && g > 0),
          summed && g + 1 < p.groups ? gemm_finish{} : p.finish,
          summed ? 0 : g};
}

/// Each thread takes rows of some groups; where rows are few, columns.
inline void gemm_in_tiles(const gemm_problem<bfloat16>& p, bool parallel) {
  const std::int64_t products = p.groups * p.m * p.n * p.k;
  const std::int64_t threads =
      parallel ? std::clamp<std::int64_t>(products / (8 * worth_a_thread), 1, concurrency()) : 1;
  const std::int64_t apart = p.c_stride == 0 ? 1 : p.groups;
  const bool by_rows = p.m >= p.n;
  const std::int64_t blocks = ceil_div(by_rows ? p.m : p.n, tiled_product::block);
  const std::int64_t parts = std::min(blocks, ceil_div(threads, std::min(apart, threads)));
  parallel_for(apart * parts, threads > 1, [&](std::int64_t task) {
    const std::int64_t first = part(blocks, parts, task % parts) * tiled_product::block;
    const std::int64_t last = part(blocks, parts, task % parts + 1) * tiled_product::block;
    for (std::int64_t g = task / parts; g < p.groups; g += apart)
      if (by_rows) in_tiles(p, g)(first, std::min(last, p.m), 0, p.n);
      else in_tiles(p, g)(0, p.m, first, std::min(last, p.n));
  });
}

#endif

}  // namespace detail

/// C_g[i][j] (+)= sum over p of A_g[i][p] B_g[p][j], for T = float or double, or 16-bit numbers, whose products are
/// summed in float.
///
/// C must overlap neither A nor B. Groups with c_stride == 0 are summed in group order; with b_stride == 0 no thread
/// packs a part of B more than once, however many groups there are. Nothing is skipped: 0 * infinity is NaN as in the
/// plain loop.
///
/// Bits: each element is summed along k in an order that depends on k alone (groups * k when summed), by fused
/// multiply-adds. So neither threads, nor m, n, transposition or leading dimensions, nor cutting rows or columns into
/// shards, changes a bit. Of bfloat16 in matrix registers (AMX) steps are added two by two and subnormals are zeros.
///
/// Sources are asked for each element once a packing: each thread that needs it, and A again for each strip of columns
/// (wider than 1.5 MiB of packed B). Finishing work gets the values gemm() alone would have left in C.
///
/// Nothing is allocated but a thread's scratch memory, once. May be called from inside parallel_for.
/// Throws shape_error for a negative size or a leading dimension shorter than a row.
/// Source: K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (2008).
template <class T>
void gemm(const gemm_problem<T>& problem, bool parallel) {
  detail::check_gemm(problem);
  if (problem.m == 0 || problem.n == 0 || problem.groups == 0) return;
  if (problem.k == 0) return detail::gemm_of_no_depth(problem);
#if defined(TESSERA_HAS_AMX)
  if constexpr (std::is_same_v<T, bfloat16>)
    if (detail::has_matrix_registers()) return detail::gemm_in_tiles(problem, parallel);
#endif
  const detail::gemm_run<T> run(problem);
  const std::int64_t products = problem.groups * problem.m * problem.n * problem.k;
  const std::int64_t threads =
      parallel ? std::clamp<std::int64_t>(products / detail::worth_a_thread, 1, concurrency()) : 1;
  const std::int64_t batch_parts = std::min(run.batches(), threads);
  const std::int64_t region_parts = detail::ceil_div(threads, batch_parts);
  const std::int64_t row_parts = detail::gemm_row_parts(run, region_parts);
  const std::int64_t column_parts = region_parts / row_parts;
  parallel_for(run.batches() * region_parts, threads > 1, [&](std::int64_t task) {
    const std::int64_t i = task % region_parts / column_parts;
    const std::int64_t j = task % column_parts;
    run({task / region_parts, detail::part(run.row_panels(), row_parts, i),
         detail::part(run.row_panels(), row_parts, i + 1), detail::part(run.column_panels(), column_parts, j),
         detail::part(run.column_panels(), column_parts, j + 1)});
  });
}

}  // namespace tessera::kernels
