// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers whose results have 16 bits: summed in float, rounded once, block by block.
#pragma once

#include <tessera/kernels/arch/sixteen_bits.hpp>
#include <tessera/kernels/gemm.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace tessera::kernels {

namespace detail {

/// A block of a result in float, which lies in the second cache while it is computed and rounded.
struct result_block {
  std::int64_t rows, columns;

  /// Matrix registers are so fast that packing operands for smaller blocks would be felt.
  static result_block largest() {
    if (has_matrix_registers()) return {512, 512};
    return {224, 256};
  }
};

/// This thread's memory for one block.
inline float* block_memory() {
  constexpr std::size_t most = 512 * 512;
  thread_local const std::unique_ptr<float[]> block(new float[most]);
  return block.get();
}

/// Rounds the elements of a block in float into rows of 16-bit numbers.
template <class T>
void round_block(const float* from, std::int64_t rows, std::int64_t columns, T* to, std::int64_t leading) {
  constexpr auto lanes = static_cast<std::int64_t>(xsimd::batch<float>::size);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t j = 0;
    for (; j + lanes <= columns; j += lanes)
      store_rounded(to + i * leading + j, xsimd::batch<float>::load_unaligned(from + i * columns + j));
    for (; j < columns; ++j) to[i * leading + j] = T(from[i * columns + j]);
  }
}

/// One problem cut into blocks; a task is one of them.
template <class T>
struct rounded_run {
  gemm_problem<T> p;
  std::int64_t groups;  ///< of C
  std::int64_t row_blocks, column_blocks;

  rounded_run(const gemm_problem<T>& problem, std::int64_t threads) : p(problem) {
    const result_block most = result_block::largest();
    groups = p.c_stride == 0 ? std::min<std::int64_t>(p.groups, 1) : p.groups;
    row_blocks = ceil_div(p.m, most.rows);
    column_blocks = ceil_div(p.n, most.columns);
    const std::int64_t narrowest = ceil_div(p.n, 32);
    while (tasks() < 4 * threads && tasks() % threads != 0 && column_blocks < narrowest) ++column_blocks;
  }

  std::int64_t tasks() const { return groups * row_blocks * column_blocks; }

  /// Computes and rounds a block; what finishes the product is told of it then.
  void operator()(std::int64_t task) const {
    const std::int64_t group = task / (row_blocks * column_blocks);
    const std::int64_t i = task / column_blocks % row_blocks, j = task % column_blocks;
    const std::int64_t row = part(p.m, row_blocks, i), rows = part(p.m, row_blocks, i + 1) - row;
    const std::int64_t column = part(p.n, column_blocks, j), columns = part(p.n, column_blocks, j + 1) - column;
    gemm_problem<T> block = p;
    block.m = rows, block.n = columns;
    if (groups == p.groups) block.groups = 1;
    const part_of_side<T> a(left_side(p), group, row, 0), b(right_side(p), group, column, 0);
    block.a = a.data, block.a_source = a.source();
    block.b = b.data, block.b_source = b.source();
    block.c = block_memory();
    block.ldc = columns;
    block.c_stride = 0;
    block.accumulate = false;
    block.finish = {};
    gemm(block, false);
    round_block(block.c, rows, columns, p.rounded + group * p.c_stride + row * p.ldc + column, p.ldc);
    if (p.finish) p.finish.run(p.finish.context, group, row, rows, column, columns);
  }
};

}  // namespace detail

/// C_g = A_g B_g, rounded once, for 16-bit numbers: each element is that of gemm() of the problem, rounded to nearest.
/// The result lies at `rounded`, with `ldc` and `c_stride`; `c` is not used and `accumulate` is false. No float array
/// of the result's size is made: a thread has memory for one block. Threads, sources, finishing work, errors: as of
/// gemm().
template <class T>
requires(is_small_float<T>) void gemm_rounded(const gemm_problem<T>& problem, bool parallel) {
  detail::check_gemm(problem);
  if (problem.m == 0 || problem.n == 0 || problem.groups == 0) return;
  const std::int64_t threads = detail::threads_for(problem, parallel);
  const detail::rounded_run<T> run(problem, threads);
  parallel_for(run.tasks(), threads > 1, [&](std::int64_t task) { run(task); });
}

}  // namespace tessera::kernels
