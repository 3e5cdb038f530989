// SPDX-License-Identifier: Apache-2.0
// What a matrix multiplication is about: sizes, operands, groups, and elementwise work that runs along with it.
#pragma once

#include <cstdint>
#include <string>

#include <tessera/core/error.hpp>
#include <tessera/core/sixteen_bits.hpp>

namespace tessera::kernels {

/// An operand that is made while it is packed, so that it never lies in memory whole.
///
/// run(context, group, row, rows, column, columns, to, leading) writes the rectangle
/// [row, row + rows) x [column, column + columns) of group `group` of the *stored* matrix (of its transpose where
/// a_transposed or b_transposed says so) to to[i * leading + j]. It runs on any thread, on several at once, must give
/// the same bits whenever it is asked for an element again, and must not call another kernel.
template <class T>
struct gemm_source {
  void (*run)(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
              std::int64_t columns, T* to, std::int64_t leading) = nullptr;
  const void* context = nullptr;

  explicit operator bool() const { return run != nullptr; }
};

/// Work on elements of C that have their final value.
///
/// run(context, group, row, rows, column, columns) is called once for each element of each C_g (group 0 where the
/// groups are summed), in rectangles that still lie in the caches of the thread it runs on. It may change C there. It
/// runs on any thread, on several at once for different elements, and must not call another kernel.
struct gemm_finish {
  void (*run)(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
              std::int64_t columns) = nullptr;
  const void* context = nullptr;

  explicit operator bool() const { return run != nullptr; }
};

/// C_g = A_g B_g, or C_g += A_g B_g, for each group g, on row-major matrices; of 16-bit numbers C is float.
template <class T>
struct gemm_problem {
  std::int64_t m = 0;  ///< rows of C and A, of one group
  std::int64_t n = 0;  ///< columns of C and B
  std::int64_t k = 0;  ///< columns of A, rows of B
  std::int64_t read =
      INT64_MAX;              ///< only so many steps of k are read: after them A is zeros; not where groups are summed
  bool a_transposed = false;  ///< A is stored (k, m) instead of (m, k)
  bool b_transposed = false;  ///< B is stored (n, k) instead of (k, n)
  bool exchanged = false;     ///< bits are those of the product of B^T and A^T, transposed
  const T* a = nullptr;
  std::int64_t lda = 0;  ///< elements from one stored row to the next
  const T* b = nullptr;
  std::int64_t ldb = 0;
  compute_t<T>* c = nullptr;
  std::int64_t ldc = 0;
  bool accumulate = false;    ///< add the product to C instead of overwriting C
  std::int64_t groups = 1;    ///< strides are elements from one to the next
  std::int64_t a_stride = 0;  ///< 0: the groups share one A, also where it is asked for
  std::int64_t b_stride = 0;  ///< 0: the groups share one B, also where it is asked for
  std::int64_t c_stride = 0;  ///< 0: the groups' products are summed into one C
  gemm_source<T> a_source;    ///< where set, A is asked for here; a and lda are not used
  gemm_source<T> b_source;    ///< where set, B is asked for here; b and ldb are not used
  gemm_finish finish;         ///< where set, told of all elements of C
  T* rounded = nullptr;       ///< for gemm_rounded, in place of c: where the result lies, in elements T
};

namespace detail {

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
  if (!p.a_source && p.lda < a_row) refuse("lda", p.lda, "the length of a stored row of A, ", a_row);
  if (!p.b_source && p.ldb < b_row) refuse("ldb", p.ldb, "the length of a stored row of B, ", b_row);
  if (p.ldc < p.n) refuse("ldc", p.ldc, "the length of a row of C, ", p.n);
}

/// Tells of a rectangle of C in parts of at most `at_once` elements where rows are not longer.
inline void finish_in_parts(const gemm_finish& finish, std::int64_t group, std::int64_t row, std::int64_t rows,
                            std::int64_t column, std::int64_t columns, std::int64_t at_once) {
  if (!finish || rows == 0 || columns == 0) return;
  const std::int64_t step = columns >= at_once ? 1 : at_once / columns;
  for (std::int64_t i = 0; i < rows; i += step)
    finish.run(finish.context, group, row + i, rows - i < step ? rows - i : step, column, columns);
}

}  // namespace detail

}  // namespace tessera::kernels
