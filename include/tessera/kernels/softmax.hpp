// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm over the rows of an array, and their gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <tessera/kernels/detail/combine.hpp>
#include <tessera/kernels/functions.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/kernels/reduce.hpp>

namespace tessera::kernels {

namespace detail {

template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// The largest of x[0..n), NaN if any is NaN.
template <class T>
T row_max(const T* x, std::int64_t n) {
  return combine_line<T>(extreme<T, true>{minus_infinity<T>}, n, [x](std::int64_t i, std::int64_t count) {
    return load_part(x + i, count, minus_infinity<T>);
  });
}

template <class T>
T row_sum(const T* x, std::int64_t n) {
  return combine_line<T>(add<T>{}, n,
                         [x](std::int64_t i, std::int64_t count) { return load_part(x + i, count, T(0)); });
}

/// e^x for x up to 0, NaN passed on.
template <class T>
batch<T> decay(const batch<T>& x) {
  if constexpr (sizeof(T) == 4) return functions::exp_of_negative(x);
  else return xsimd::exp(x);
}

/// y[j] = exp(x[j] - top), and the sum of n of them, of which only the first `seen` are written and the rest are 0.
template <class T>
T decay_row(const T* x, T* y, std::int64_t n, std::int64_t seen, T top) {
  const batch<T> shift(top), none(T(0));
  return combine_line<T>(add<T>{}, n, [=](std::int64_t j, std::int64_t count) {
    if (j >= seen) return none;
    const batch<T> e = decay<T>(load_part(x + j, count, minus_infinity<T>) - shift);
    store_part(y + j, count, e);
    return e;
  });
}

/// out[i] = f(i, number of elements from i on), a batch at a time.
template <class T, class F>
void write_row(T* out, std::int64_t n, const F& f) {
  for (std::int64_t i = 0; i < n; i += width<T>) store_part(out + i, n - i, f(i, n - i));
}

/// Calls f(row) for every row, on several threads when they hold enough elements.
template <class F>
void for_each_row(std::int64_t rows, std::int64_t cols, bool parallel, const F& f) {
  constexpr std::int64_t worth_it = std::int64_t{1} << 13;
  if (cols > 0) parallel_for(rows, parallel && rows * cols >= worth_it, f);
}

/// Calls f(from, to, top) for each row of x and of y with the row's largest element; a row of nothing but -infinity is
/// filled with `if_masked` instead.
template <class T, class F>
void for_each_row_with_top(const T* x, T* y, std::int64_t rows, std::int64_t cols, bool parallel, T if_masked, F&& f) {
  for_each_row(rows, cols, parallel, [&](std::int64_t i) {
    T* const to = y + i * cols;
    const T top = row_max(x + i * cols, cols);
    if (top == minus_infinity<T>) std::fill_n(to, cols, if_masked);
    else f(x + i * cols, to, top);
  });
}

}  // namespace detail

/// y[i][j] = exp(x[i][j] - max_i) / sum over j of exp(x[i][j] - max_i), for contiguous [rows][cols] arrays of
/// float or double.
///
/// A row of nothing but -infinity gives zeros; a NaN or +infinity gives NaN throughout its row. y may be x.
/// Bits: a row's result depends on its elements alone, so cutting the rows into shards changes nothing.
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t cols, bool parallel) {
  using namespace detail;
  for_each_row_with_top(x, y, rows, cols, parallel, T(0), [=](const T* from, T* to, T top) {
    const batch<T> scale(T(1) / decay_row(from, to, cols, cols, top));
    write_row(to, cols, [=](std::int64_t j, std::int64_t count) { return load_part(to + j, count, T(0)) * scale; });
  });
}

/// Rows of which columns from `seen` on are hidden.
inline constexpr std::int64_t most_masked_rows = 256;

/// The same for at most most_masked_rows rows in which x is `hidden` from column `seen` on, a multiple of 64: of x only
/// columns before it are read, of y only they are written, the others are zeros. Returns false, and has written
/// nothing, if in some row they are not, or the row is not finite. Same bits.
template <class T>
bool softmax_of_seen(const T* x, T* y, std::int64_t rows, std::int64_t cols, std::int64_t seen, T hidden) {
  using namespace detail;
  constexpr T out_of_reach = sizeof(T) == 4 ? T(105) : T(760);  // exp(-out_of_reach) is 0
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T tops[most_masked_rows];
  for (std::int64_t i = 0; i < rows; ++i) {
    tops[i] = row_max(x + i * cols, seen);
    const bool nothing = tops[i] == -infinity && hidden == -infinity;
    if (!nothing && !(tops[i] - hidden >= out_of_reach && tops[i] < infinity)) return false;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    T* const to = y + i * cols;
    if (tops[i] == -infinity) {
      std::fill_n(to, seen, T(0));
      continue;
    }
    const batch<T> scale(T(1) / decay_row(x + i * cols, to, cols, seen, tops[i]));
    write_row(to, seen, [=](std::int64_t j, std::int64_t count) { return load_part(to + j, count, T(0)) * scale; });
  }
  return true;
}

/// y[i][j] = x[i][j] - max_i - log(sum over j of exp(x[i][j] - max_i)), for contiguous [rows][cols] arrays of
/// float or double.
///
/// A row of nothing but -infinity gives -infinity; a NaN or +infinity gives NaN throughout its row. y may be x. Bits as
/// softmax.
template <class T>
void log_softmax(const T* x, T* y, std::int64_t rows, std::int64_t cols, bool parallel) {
  using namespace detail;
  for_each_row_with_top(x, y, rows, cols, parallel, minus_infinity<T>, [=](const T* from, T* to, T top) {
    const T sum = combine_line<T>(add<T>{}, cols, [=](std::int64_t j, std::int64_t count) {
      return decay<T>(load_part(from + j, count, minus_infinity<T>) - batch<T>(top));
    });
    const batch<T> shift(top), log_sum(std::log(sum));
    write_row(to, cols,
              [=](std::int64_t j, std::int64_t count) { return load_part(from + j, count, T(0)) - shift - log_sum; });
  });
}

/// dx[i][j] = y[i][j] (g[i][j] - sum over j of g[i][j] y[i][j]), where y = softmax(x) and g is the gradient at y.
///
/// A row of zeros in y (all -infinity in x) gives zeros. dx may be y or g. Bits as softmax.
template <class T>
void softmax_backward(const T* y, const T* g, T* dx, std::int64_t rows, std::int64_t cols, bool parallel) {
  using namespace detail;
  for_each_row(rows, cols, parallel, [=](std::int64_t i) {
    const T* const out = y + i * cols;
    const T* const gradient = g + i * cols;
    const batch<T> dot(combine_line<T>(add<T>{}, cols, [=](std::int64_t j, std::int64_t count) {
      return load_part(gradient + j, count, T(0)) * load_part(out + j, count, T(0));
    }));
    write_row(dx + i * cols, cols, [=](std::int64_t j, std::int64_t count) {
      return load_part(out + j, count, T(0)) * (load_part(gradient + j, count, T(0)) - dot);
    });
  });
}

/// The same where y is zero from column `seen` on, a multiple of 64: nothing is read or written there. Same bits if g
/// is finite.
template <class T>
void softmax_backward_of_seen(const T* y, const T* g, T* dx, std::int64_t rows, std::int64_t cols, std::int64_t seen) {
  using namespace detail;
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* const out = y + i * cols;
    const T* const gradient = g + i * cols;
    const batch<T> none(T(0));
    const batch<T> dot(combine_line<T>(add<T>{}, cols, [=](std::int64_t j, std::int64_t count) {
      return j < seen ? load_part(gradient + j, count, T(0)) * load_part(out + j, count, T(0)) : none;
    }));
    write_row(dx + i * cols, seen, [=](std::int64_t j, std::int64_t count) {
      return load_part(out + j, count, T(0)) * (load_part(gradient + j, count, T(0)) - dot);
    });
  }
}

/// dx[i][j] = g[i][j] - exp(logp[i][j]) sum over j of g[i][j], where logp = log_softmax(x) and g is the gradient at
/// logp.
///
/// A row of nothing but -infinity in logp gives zeros. dx may be logp or g. Bits as softmax.
template <class T>
void log_softmax_backward(const T* logp, const T* g, T* dx, std::int64_t rows, std::int64_t cols, bool parallel) {
  using namespace detail;
  for_each_row(rows, cols, parallel, [=](std::int64_t i) {
    const T* const out = logp + i * cols;
    const T* const gradient = g + i * cols;
    if (row_max(out, cols) == minus_infinity<T>) {
      std::fill_n(dx + i * cols, cols, T(0));
      return;
    }
    const batch<T> sum(row_sum(gradient, cols));
    write_row(dx + i * cols, cols, [=](std::int64_t j, std::int64_t count) {
      return load_part(gradient + j, count, T(0)) - decay<T>(load_part(out + j, count, T(0))) * sum;
    });
  });
}

}  // namespace tessera::kernels
