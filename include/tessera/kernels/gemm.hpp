// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication, alone or in groups: batched, with a shared right operand, or summed over the groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <tessera/core/error.hpp>
#include <tessera/kernels/detail/gemm_pack.hpp>
#include <tessera/kernels/detail/gemm_tile.hpp>
#include <tessera/kernels/detail/gemm_tiles.hpp>
#include <tessera/kernels/detail/workspace.hpp>
#include <tessera/kernels/parallel.hpp>

namespace tessera::kernels {

/// C_g = A_g B_g, or C_g += A_g B_g, for each group g, on row-major matrices; of 16-bit numbers C is float.
template <class T>
struct gemm_problem {
  std::int64_t m = 0;         ///< rows of C and A, of one group
  std::int64_t n = 0;         ///< columns of C and B
  std::int64_t k = 0;         ///< columns of A, rows of B
  bool a_transposed = false;  ///< A is stored (k, m) instead of (m, k)
  bool b_transposed = false;  ///< B is stored (n, k) instead of (k, n)
  const T* a = nullptr;
  std::int64_t lda = 0;  ///< elements from one stored row to the next
  const T* b = nullptr;
  std::int64_t ldb = 0;
  compute_t<T>* c = nullptr;
  std::int64_t ldc = 0;
  bool accumulate = false;  ///< add the product to C instead of overwriting C
  std::int64_t groups = 1;
  std::int64_t a_stride = 0;  ///< elements from one group to the next
  std::int64_t b_stride = 0;  ///< 0: the groups share one B
  std::int64_t c_stride = 0;  ///< 0: the groups' products are summed into one C, as if k were groups * k
};

namespace detail {

/// The depth is summed in blocks of at most this many steps, so that a block of tile_columns of B stays in a 48 KiB
/// cache. It is the same for every type and instruction set, because it fixes the order of summation.
inline constexpr std::int64_t gemm_depth = 256;

template <class T>
inline constexpr std::int64_t packed_a_size = (std::int64_t{1} << 18) / static_cast<std::int64_t>(sizeof(compute_t<T>));

template <class T>
inline constexpr std::int64_t packed_b_size = (std::int64_t{3} << 19) / static_cast<std::int64_t>(sizeof(compute_t<T>));

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
  /// Up to this many panels of rows, packing B costs more than reading it where it is.
  static constexpr std::int64_t few_panels = 4;

  gemm_operand<T> a(std::int64_t group) const { return {p_.a + group * p_.a_stride, p_.lda, p_.m, p_.a_transposed}; }
  gemm_operand<T> b(std::int64_t group) const { return {p_.b + group * p_.b_stride, p_.ldb, p_.n, !p_.b_transposed}; }
  std::int64_t panel_row(std::int64_t panel) const { return part(p_.m, panels_, panel); }

  /// Packs `lines` lines of the steps [start, start + depth), which may span several groups.
  template <class Operand>
  void pack_steps(const Operand& operand, std::int64_t group, std::int64_t line, std::int64_t lines, std::int64_t start,
                  std::int64_t depth, packed* to, std::int64_t step) const {
    for (std::int64_t done = 0; done < depth;) {
      const std::int64_t within = (start + done) % p_.k;
      const std::int64_t steps = std::min(depth - done, p_.k - within);
      pack(operand(group + (start + done) / p_.k), line, lines, within, steps, to + done * step, step);
      done += steps;
    }
  }

  /// All rows of the strip times its columns of B, over the steps [start, start + depth) of the depth. B is packed a
  /// panel at a time, just before its first use, while its place in the first cache is warm.
  void multiply_strip(const gemm_region& strip, std::int64_t start, std::int64_t depth, packed* packed_a,
                      packed* packed_b) const {
    const std::int64_t panels = strip.row_end - strip.row_begin;
    const std::int64_t at_once = (packed_a_size<T> - width<T>) / (depth * tile_rows<T>);
    const std::int64_t row_blocks = ceil_div(panels, at_once);
    for (std::int64_t i = 0; i < row_blocks; ++i) {
      gemm_region block = strip;
      block.row_begin = strip.row_begin + part(panels, row_blocks, i);
      block.row_end = strip.row_begin + part(panels, row_blocks, i + 1);
      pack_rows_of_a(block, start, depth, packed_a);
      for (std::int64_t q = strip.column_begin; q < strip.column_end; ++q) {
        const std::int64_t slot = row_blocks == 1 ? 0 : q - strip.column_begin;
        packed* const panel = packed_b + slot * depth * tile_columns<T>;
        if constexpr (std::is_same_v<T, packed>) {
          if (panels <= few_panels && readable_in_place(q)) {
            multiply_panel(block, q, start, depth, packed_a, b(strip.batch).at(q * tile_columns<T>, start), p_.ldb);
            continue;
          }
        }
        if (i == 0) pack_panel_of_b(strip.batch, q, start, depth, panel);
        multiply_panel(block, q, start, depth, packed_a, panel, padded(panel_columns(q)));
      }
    }
  }

  /// B needs no packing for few rows if its own rows are short: longer ones share cache sets and span pages.
  bool readable_in_place(std::int64_t q) const {
    constexpr std::int64_t short_row = 1024 / static_cast<std::int64_t>(sizeof(T));
    return !p_.b_transposed && p_.ldb <= short_row && depth_groups_ == 1 && panel_columns(q) == tile_columns<T>;
  }

  std::int64_t panel_columns(std::int64_t q) const { return std::min(tile_columns<T>, p_.n - q * tile_columns<T>); }
  static std::int64_t padded(std::int64_t columns) { return ceil_div(columns, width<T>) * width<T>; }

  void pack_panel_of_b(std::int64_t group, std::int64_t q, std::int64_t start, std::int64_t depth,
                       packed* panel) const {
    const std::int64_t columns = panel_columns(q);
    pack_steps([this](std::int64_t g) { return b(g); }, group, q * tile_columns<T>, columns, start, depth, panel,
               padded(columns));
  }

  void pack_rows_of_a(const gemm_region& block, std::int64_t start, std::int64_t depth, packed* packed_a) const {
    for (std::int64_t r = block.row_begin; r < block.row_end; ++r) {
      const std::int64_t row = panel_row(r % panels_);
      const std::int64_t rows = panel_row(r % panels_ + 1) - row;
      pack_steps([this](std::int64_t g) { return a(g); }, block.batch + r / panels_, row, rows, start, depth,
                 packed_a + (r - block.row_begin) * depth * tile_rows<T>, rows);
    }
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

template <class T>
void check_gemm(const gemm_problem<T>& p) {
  const auto refuse = [](const char* name, std::int64_t value, const char* least, std::int64_t bound) {
    throw shape_error("tessera: gemm: " + std::string(name) + " is " + std::to_string(value) +
                      "; it must be at least " + least + std::to_string(bound));
  };
  if (p.m < 0) refuse("m", p.m, "", 0);
  if (p.n < 0) refuse("n", p.n, "", 0);
  if (p.k < 0) refuse("k", p.k, "", 0);
  if (p.groups < 0) refuse("groups", p.groups, "", 0);
  const std::int64_t a_row = p.a_transposed ? p.m : p.k;
  const std::int64_t b_row = p.b_transposed ? p.k : p.n;
  if (p.lda < a_row) refuse("lda", p.lda, "the length of a stored row of A, ", a_row);
  if (p.ldb < b_row) refuse("ldb", p.ldb, "the length of a stored row of B, ", b_row);
  if (p.ldc < p.n) refuse("ldc", p.ldc, "the length of a row of C, ", p.n);
}

/// What a product of depth 0 leaves in C: zeros, or C itself when accumulating.
template <class T>
void gemm_of_no_depth(const gemm_problem<T>& p) {
  if (p.accumulate) return;
  for (std::int64_t g = 0; g < (p.c_stride == 0 ? 1 : p.groups); ++g)
    for (std::int64_t i = 0; i < p.m; ++i) std::fill_n(p.c + g * p.c_stride + i * p.ldc, p.n, compute_t<T>{0});
}

/// Products below this many multiplications are not worth another thread.
inline constexpr std::int64_t worth_a_thread = std::int64_t{1} << 17;

#if defined(TESSERA_HAS_AMX)

/// Group g of a problem in matrix registers.
inline tiled_product in_tiles(const gemm_problem<bfloat16>& p, std::int64_t g) {
  return {{p.a + g * p.a_stride, p.lda, p.m, p.a_transposed},
          {p.b + g * p.b_stride, p.ldb, p.n, !p.b_transposed},
          p.k,
          p.c + g * p.c_stride,
          p.ldc,
          p.accumulate || (p.c_stride == 0 && g > 0)};
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
