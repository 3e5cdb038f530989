// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication, alone or in groups: batched, with a shared right operand, or summed over the groups.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tessera/kernels/detail/gemm_run.hpp>
#include <tessera/kernels/detail/gemm_tiles.hpp>
#include <tessera/kernels/detail/workspace.hpp>
#include <tessera/kernels/float_products.hpp>
#include <tessera/kernels/gemm_problem.hpp>
#include <tessera/kernels/parallel.hpp>

namespace tessera::kernels {

namespace detail {

/// What a product of depth 0 leaves in C: zeros, or C itself when accumulating.
template <class T>
void gemm_of_no_depth(const gemm_problem<T>& p) {
  for (std::int64_t g = 0; g < (p.c_stride == 0 ? 1 : p.groups); ++g) {
    for (std::int64_t i = 0; i < p.m && !p.accumulate; ++i)
      std::fill_n(p.c + g * p.c_stride + i * p.ldc, p.n, compute_t<T>{0});
    finish_in_parts(p.finish, g, 0, p.m, 0, p.n, finish_at_once);
  }
}

/// C^T = B^T A^T: operands lie as before, each read as the other side.
template <class T>
gemm_problem<T> with_sides_exchanged(const gemm_problem<T>& p, const gemm_finish& finish) {
  gemm_problem<T> q = p;
  q.m = p.n, q.n = p.m;
  q.a = p.b, q.lda = p.ldb, q.a_stride = p.b_stride, q.a_transposed = !p.b_transposed, q.a_source = p.b_source;
  q.b = p.a, q.ldb = p.lda, q.b_stride = p.a_stride, q.b_transposed = !p.a_transposed, q.b_source = p.a_source;
  q.ldc = p.m;
  q.finish = finish;
  return q;
}

/// Tells finishing work of a product whose sides were exchanged of C itself.
struct exchanged_finish {
  gemm_finish told;

  static void run(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns) {
    const gemm_finish& told = static_cast<const exchanged_finish*>(context)->told;
    told.run(told.context, group, column, columns, row, rows);
  }
};

/// Products below this many multiplications are not worth another thread.
inline constexpr std::int64_t worth_a_thread = std::int64_t{1} << 17;

/// How many threads a problem is worth; one if it is not to run in parallel.
template <class T>
std::int64_t threads_for(const gemm_problem<T>& p, bool parallel, std::int64_t worth_one = worth_a_thread) {
  return parallel ? std::clamp<std::int64_t>(p.groups * p.m * p.n * p.k / worth_one, 1, concurrency()) : 1;
}

/// A rectangle of one group's C.
struct gemm_part {
  std::int64_t group, row, rows, column, columns;
};

/// Computes a part of C by way of its transpose: `of_c` has room for at.columns x at.rows elements.
template <class T>
void gemm_of_part_exchanged(const gemm_problem<T>& p, const gemm_part& at, compute_t<T>* of_c) {
  compute_t<T>* const c = p.c + at.group * p.c_stride + at.row * p.ldc + at.column;
  const part_of_side<T> a(left_side(p), at.group, at.row, 0), b(right_side(p), at.group, at.column, 0);
  gemm_problem<T> q = with_sides_exchanged(p, {});
  q.m = at.columns, q.n = q.ldc = at.rows;
  q.a = b.data, q.a_source = b.source();
  q.b = a.data, q.b_source = a.source();
  q.c = of_c;
  if (p.c_stride != 0) q.groups = 1;
  if (p.accumulate) copy_transposed(c, p.ldc, at.rows, at.columns, of_c, at.rows);
  const gemm_run<T> run(q);
  run(run.region(0));
  copy_transposed(of_c, at.rows, at.columns, at.rows, c, p.ldc);
  finish_in_parts(p.finish, at.group, at.row, at.rows, at.column, at.columns, finish_at_once);
}

/// Whether no row of C fills a vector, while columns fill some.
template <class T>
bool has_few_columns(const gemm_problem<T>& p) {
  return p.n <= width<T> && p.m >= 2 * width<T>;
}

/// A product of few columns, by blocks of its rows.
template <class T>
void gemm_of_few_columns(const gemm_problem<T>& p, bool parallel) {
  using element = compute_t<T>;
  constexpr std::int64_t most_rows = 4 * tile_columns<T>;
  constexpr auto room = static_cast<std::size_t>(width<T> * most_rows);
  const std::int64_t groups = p.c_stride == 0 ? 1 : p.groups;
  const std::int64_t threads = threads_for(p, parallel);
  const std::int64_t blocks = std::max(ceil_div(p.m, most_rows), ceil_div(threads, groups));
  parallel_for(groups * blocks, threads > 1, [&](std::int64_t task) {
    alignas(64) element of_c[room];
    const std::int64_t i = task % blocks, row = part(p.m, blocks, i);
    gemm_of_part_exchanged<T>(p, {task / blocks, row, part(p.m, blocks, i + 1) - row, 0, p.n}, of_c);
  });
}

/// Into how many blocks the columns of a product of few rows are cut: C^T of one fits the staging memory, which is free
/// because no operand is made there.
template <class T>
std::int64_t blocks_of_columns(const gemm_problem<T>& p, std::int64_t threads) {
  const std::int64_t a_group = ceil_div(threads, p.groups);
  return std::min(ceil_div(ceil_div(p.n, staged_lines<T>(p.m)), a_group) * a_group, ceil_div(p.n, width<T>));
}

/// Whether B lies by columns and is so large that transposing C, and A for each block, is less work than transposing B.
template <class T>
bool has_few_rows(const gemm_problem<T>& p, std::int64_t threads) {
  const bool alone = p.groups == 1 || (p.b_stride != 0 && p.c_stride != 0);
  return alone && p.b_transposed && !p.a_transposed && !p.a_source && !p.b_source && p.m >= 2 * width<T> &&
         p.m <= 2 * tile_columns<T> && 2 * (blocks_of_columns(p, threads) * p.m * p.k + p.m * p.n) <= p.n * p.k;
}

/// A product of few rows, by blocks of its columns.
template <class T>
void gemm_of_few_rows(const gemm_problem<T>& p, std::int64_t threads) {
  const std::int64_t blocks = blocks_of_columns(p, threads);
  parallel_for(p.groups * blocks, threads > 1, [&](std::int64_t task) {
    const std::int64_t i = task % blocks, column = part(p.n, blocks, i);
    gemm_of_part_exchanged<T>(p, {task / blocks, 0, p.m, column, part(p.n, blocks, i + 1) - column}, staging<T>());
  });
}

#if defined(TESSERA_HAS_BFLOAT16_TILES)

/// How groups of a problem go together in tiles: all of them where they share B or where their steps are in a row, else
/// each alone.
template <class T>
struct groups_in_tiles {
  bool in_a_row, share_b;
  std::int64_t alone;  ///< what is left to be done one by one

  explicit groups_in_tiles(const gemm_problem<T>& p)
      : in_a_row(p.c_stride == 0 && p.k % tile_depth == 0),
        share_b(p.c_stride != 0 && p.b_stride == 0),
        alone(in_a_row || share_b ? 1 : p.groups) {}
};

/// Group g of a problem in tiles, with all that go with it.
template <class T>
tiled_product<T> in_tiles(const gemm_problem<T>& p, const groups_in_tiles<T>& groups, std::int64_t g) {
  const bool summed = p.c_stride == 0;
  const std::int64_t depth = groups.in_a_row ? p.groups * p.k : p.k;
  return {left_side(p),
          right_side(p),
          g,
          p.m,
          p.k,
          depth,
          std::min(p.read, depth),
          p.c + g * p.c_stride,
          p.ldc,
          p.c_stride,
          p.accumulate || (summed && g > 0),
          p.exchanged,
          summed && g + 1 < groups.alone ? gemm_finish{} : p.finish,
          summed ? 0 : g};
}

/// Each thread takes rows of some groups; where rows are few, columns.
template <class T>
void gemm_in_tiles(const gemm_problem<T>& p, bool parallel) {
  constexpr std::int64_t faster = sizeof(T) == 2 ? 8 : 2;  // than multiply-adds, of which a thread is worth so many
  const std::int64_t threads = threads_for(p, parallel, faster * worth_a_thread);
  const groups_in_tiles<T> groups(p);
  const std::int64_t apart = p.c_stride == 0 ? 1 : groups.alone;
  constexpr std::int64_t block = tiled_product<T>::block;
  const std::int64_t row_blocks = ceil_div(p.m, block) * (groups.share_b ? p.groups : 1);
  const std::int64_t column_blocks = ceil_div(p.n, block);
  const bool by_rows = row_blocks >= column_blocks;
  const std::int64_t blocks = by_rows ? row_blocks : column_blocks;
  const std::int64_t parts = std::min(blocks, ceil_div(threads, std::min(apart, threads)));
  parallel_for(apart * parts, threads > 1, [&](std::int64_t task) {
    const std::int64_t first = part(blocks, parts, task % parts), last = part(blocks, parts, task % parts + 1);
    for (std::int64_t g = task / parts; g < groups.alone; g += apart)
      if (tiled_run<T> run(in_tiles(p, groups, g)); by_rows) run(first, last, 0, p.n);
      else run(0, row_blocks, first * block, std::min(last * block, p.n));
  });
}

#endif

#if defined(TESSERA_HAS_AMX)

/// Whether a product of floats is one of their parts in matrix registers. It goes by the depth alone, like the order of
/// sums.
inline bool taken_in_parts(const gemm_problem<float>& p) {
  return p.k >= depth_unit && has_matrix_registers() &&
         float_products.load(std::memory_order_relaxed) == dot_algorithm::bf16_bf16_f32_x6;
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
/// Bits: each element is summed along k in an order that depends on k alone (and the number of groups, when summed). So
/// neither threads, nor m, n, transposition or leading dimensions, nor cutting rows or columns into shards, changes a
/// bit.
///
/// float32 and float64 numbers are summed by fused multiply-adds. Where the processor has matrix registers (AMX) and k
/// is at least 32, float32 numbers are sums of three bfloat16 numbers each there, unless default_dot_algorithm says
/// otherwise: six products of such parts, of which 32 steps are added at once. What is left out, and what is rounded,
/// is less than fused multiply-adds round. Products below 2^-102 may lose up to 2^-126 each. A line of A or B that
/// holds a number which has no such parts (special_float: not 0 and below 2^-102, or 2^62 and above, infinite, NaN) is
/// multiplied by fused multiply-adds, in that block of the depth.
///
/// Of bfloat16, where processors have fast instructions for it (AMX, Zen's AVX-512 BF16), steps are added two by two
/// and subnormals are zeros.
///
/// Sources are asked for each element once a packing: each thread that needs it, and A again for each strip of columns
/// (wider than 1.5 MiB of packed B), or B for each block of rows where C is no wider than a vector. Finishing work gets
/// the values gemm() alone would have left in C.
///
/// Nothing is allocated but a thread's scratch memory, once. May be called from inside parallel_for.
/// Throws shape_error for a negative size or a leading dimension shorter than a row.
/// Source: K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (2008).
template <class T>
void gemm(const gemm_problem<T>& problem, bool parallel) {
  detail::check_gemm(problem);
  if (problem.m == 0 || problem.n == 0 || problem.groups == 0) return;
  if (problem.k == 0) return detail::gemm_of_no_depth(problem);
#if defined(TESSERA_HAS_BFLOAT16_TILES)
  if constexpr (std::is_same_v<T, bfloat16>)
    if (detail::has_matrix_registers() || detail::has_fast_dot_products())
      return detail::gemm_in_tiles(problem, parallel);
#endif
#if defined(TESSERA_HAS_AMX)
  if constexpr (std::is_same_v<T, float>)
    if (detail::taken_in_parts(problem)) return detail::gemm_in_tiles(problem, parallel);
#endif
  if (problem.n == 1 && problem.ldc == 1 && problem.m > 1) {  // a row instead of a column: vectors run along rows
    const detail::exchanged_finish finish{problem.finish};
    return gemm(detail::with_sides_exchanged(
                    problem, problem.finish ? gemm_finish{detail::exchanged_finish::run, &finish} : gemm_finish{}),
                parallel);
  }
  if (detail::has_few_columns(problem)) return detail::gemm_of_few_columns(problem, parallel);
  const std::int64_t threads = detail::threads_for(problem, parallel);
  if constexpr (std::is_same_v<T, compute_t<T>>)
    if (detail::has_few_rows(problem, threads)) return detail::gemm_of_few_rows(problem, threads);
  const detail::gemm_run<T> run(problem, threads);
  parallel_for(run.regions(), threads > 1, [&](std::int64_t i) { run(run.region(i)); });
}

}  // namespace tessera::kernels
