// SPDX-License-Identifier: Apache-2.0
// Each kernel as the plain loop it means, with the same signature: what the tuned kernels are tested against.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <tessera/kernels/gather.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/move.hpp>
#include <tessera/kernels/overlap_add.hpp>
#include <tessera/kernels/reduce.hpp>

namespace tessera::kernels::naive {

/// Element [row, column] of group g of a stored operand: what lies there, or what its source makes.
template <class T>
compute_t<T> stored(const gemm_source<T>& source, const T* data, std::int64_t g, std::int64_t row, std::int64_t column,
                    std::int64_t leading, std::int64_t stride) {
  if (!source) return compute_t<T>{data[g * stride + row * leading + column]};
  T made{};
  source.run(source.context, stride == 0 ? 0 : g, row, 1, column, 1, &made, 1);
  return compute_t<T>{made};
}

/// C[g, i, j] = sum over p of A[g, i, p] B[g, p, j].  g: groups, i: m, j: n, p: k.
template <class T>
void gemm(const gemm_problem<T>& q, bool = false) {
  const bool summed = q.c_stride == 0;
  for (std::int64_t g = 0; g < q.groups; ++g)
    for (std::int64_t i = 0; i < q.m; ++i)
      for (std::int64_t j = 0; j < q.n; ++j) {
        using number = compute_t<T>;
        number& c = q.c[g * q.c_stride + i * q.ldc + j];
        number sum = q.accumulate || (summed && g > 0) ? c : number{0};
        for (std::int64_t p = 0; p < q.k; ++p)
          sum += stored(q.a_source, q.a, g, q.a_transposed ? p : i, q.a_transposed ? i : p, q.lda, q.a_stride) *
                 stored(q.b_source, q.b, g, q.b_transposed ? j : p, q.b_transposed ? p : j, q.ldb, q.b_stride);
        c = sum;
      }
  for (std::int64_t g = 0; q.finish && g < (summed && q.groups > 0 ? 1 : q.groups); ++g)
    q.finish.run(q.finish.context, g, 0, q.m, 0, q.n);
}

/// a + b, a b, or the larger or smaller of the two; NaN when either is NaN.
template <class T>
T combine(reduce_kind kind, T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  if (kind == reduce_kind::max) return a < b ? b : a;
  if (kind == reduce_kind::min) return b < a ? b : a;
  const bool product = kind == reduce_kind::prod;
  if constexpr (std::is_same_v<T, std::int32_t>) {
    const auto x = static_cast<std::uint32_t>(a);
    const auto y = static_cast<std::uint32_t>(b);
    return static_cast<T>(product ? x * y : x + y);
  } else {
    return static_cast<T>(product ? a * b : a + b);
  }
}

/// out[o, c] = in[o, 0, c] + ... + in[o, n-1, c].  o: outer, r: n, c: inner.
template <class T>
void reduce(reduce_kind kind, const T* in, compute_t<T>* out, std::int64_t outer, std::int64_t n, std::int64_t inner,
            bool = false) {
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t c = 0; c < inner; ++c) {
      compute_t<T> total = reduce_identity<compute_t<T>>(kind);
      for (std::int64_t r = 0; r < n; ++r) total = combine(kind, total, compute_t<T>{in[(o * n + r) * inner + c]});
      out[o * inner + c] = total;
    }
}

/// in[first][i] + ... + in[last-1][i], the first half (rounded down) and the rest each by itself.
template <class T>
compute_t<T> combine_halves(reduce_kind kind, const T* const* in, std::int64_t i, int first, int last) {
  if (last - first == 1) return in[first][i];
  const int middle = first + (last - first) / 2;
  return combine(kind, combine_halves(kind, in, i, first, middle), combine_halves(kind, in, i, middle, last));
}

/// out[i] = in[0][i] + ... + in[shards-1][i], half by half.  i: n.
template <class T>
void add_shards(reduce_kind kind, T* out, const T* const* in, int shards, std::int64_t n, bool = false) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(combine_halves(kind, in, i, 0, shards));
}

/// to[i . to_strides] = from[i . from_strides] for every position i within the extents.
template <class T>
void move(const T* from, T* to, const move_problem& p, bool = false) {
  std::int64_t size = 1;
  for (int d = 0; d < p.rank; ++d) size *= p.extents[d];
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t source = 0;
    std::int64_t target = 0;
    std::int64_t rest = i;
    for (int d = p.rank - 1; d >= 0; --d) {
      source += rest % p.extents[d] * p.from_strides[d];
      target += rest % p.extents[d] * p.to_strides[d];
      rest /= p.extents[d];
    }
    to[target] = from[source];
  }
}

/// out[b, o, j, c] = array[b, o, index, c], or 0 where there is no such place.
template <class T>
void gather(const gather_problem& p, const T* array, T* out, bool = false) {
  for (std::int64_t i = 0; i < p.chosen_size(); ++i) {
    const std::int64_t c = i % p.inner, j = i / p.inner % p.m, block = i / p.inner / p.m;
    const std::int64_t index = block / p.outer * p.m + j;
    const std::int64_t at = p.place(p.pointwise ? index * p.inner + c : index);
    out[i] = at < 0 ? T(0) : array[(block * p.n + at) * p.inner + c];
  }
}

/// array[b, o, index, c] is updated by updates[b, o, j, c], one after another.
template <class T>
void scatter(const gather_problem& p, T* array, const T* updates, bool = false) {
  for (std::int64_t i = 0; i < p.chosen_size(); ++i) {
    const std::int64_t c = i % p.inner, j = i / p.inner % p.m, block = i / p.inner / p.m;
    const std::int64_t index = block / p.outer * p.m + j;
    const std::int64_t at = p.place(p.pointwise ? index * p.inner + c : index);
    if (at < 0) continue;
    T& old = array[(block * p.n + at) * p.inner + c];
    switch (p.kind) {
      case scatter_kind::add: old = combine(reduce_kind::sum, old, updates[i]); break;
      case scatter_kind::set: old = updates[i]; break;
      case scatter_kind::max: old = combine(reduce_kind::max, old, updates[i]); break;
      case scatter_kind::min: old = combine(reduce_kind::min, old, updates[i]); break;
    }
  }
}

/// out[o, h, w, c] = sum of in[o, i, j, k, l, c] where h = i stride + k dilation, and w likewise of j and l.
template <class T>
void overlap_add(const overlap_problem& p, const T* in, T* out, bool = false) {
  const auto& [a, b] = p.windows;
  std::fill_n(out, p.outer * a.extent * b.extent * p.inner, T(0));
  for (std::int64_t n = 0; n < p.size(); ++n) {
    std::int64_t rest = n;
    const auto next = [&](std::int64_t extent) { return std::exchange(rest, rest / extent) % extent; };
    const std::int64_t c = next(p.inner), l = next(b.size), k = next(a.size), j = next(b.count), i = next(a.count);
    T& sum =
        out[((rest * a.extent + i * a.stride + k * a.dilation) * b.extent + j * b.stride + l * b.dilation) * p.inner +
            c];
    sum = combine(reduce_kind::sum, sum, in[n]);
  }
}

/// The largest of x[0..n), NaN if any is NaN.
template <class T>
T largest(const T* x, std::int64_t n) {
  T top = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < n; ++j) top = combine(reduce_kind::max, top, x[j]);
  return top;
}

/// y[i, j] = exp(x[i, j] - max_i) / sum over j of exp(x[i, j] - max_i),
/// or zeros where max_i = -infinity.  i: rows, j: cols.
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t cols, bool = false) {
  for (std::int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const T top = largest(x, cols);
    const bool empty = top == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (std::int64_t j = 0; j < cols; ++j) sum += empty ? T(0) : std::exp(x[j] - top);
    for (std::int64_t j = 0; j < cols; ++j) y[j] = empty ? T(0) : std::exp(x[j] - top) / sum;
  }
}

/// y[i, j] = x[i, j] - max_i - log(sum over j of exp(x[i, j] - max_i)); -infinity where max_i is.  i: rows, j: cols.
template <class T>
void log_softmax(const T* x, T* y, std::int64_t rows, std::int64_t cols, bool = false) {
  for (std::int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const T top = largest(x, cols);
    const bool empty = top == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (std::int64_t j = 0; j < cols; ++j) sum += empty ? T(1) : std::exp(x[j] - top);
    for (std::int64_t j = 0; j < cols; ++j) y[j] = empty ? x[j] : x[j] - top - std::log(sum);
  }
}

/// dx[i, j] = y[i, j] (g[i, j] - sum over j of g[i, j] y[i, j]).  i: rows, j: cols.
template <class T>
void softmax_backward(const T* y, const T* g, T* dx, std::int64_t rows, std::int64_t cols, bool = false) {
  for (std::int64_t i = 0; i < rows; ++i, y += cols, g += cols, dx += cols) {
    T dot = 0;
    for (std::int64_t j = 0; j < cols; ++j) dot += g[j] * y[j];
    for (std::int64_t j = 0; j < cols; ++j) dx[j] = y[j] * (g[j] - dot);
  }
}

/// dx[i, j] = g[i, j] - exp(logp[i, j]) sum over j of g[i, j],
/// or zeros where all of logp[i] is -infinity.  i: rows, j: cols.
template <class T>
void log_softmax_backward(const T* logp, const T* g, T* dx, std::int64_t rows, std::int64_t cols, bool = false) {
  for (std::int64_t i = 0; i < rows; ++i, logp += cols, g += cols, dx += cols) {
    const bool empty = largest(logp, cols) == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (std::int64_t j = 0; j < cols; ++j) sum += g[j];
    for (std::int64_t j = 0; j < cols; ++j) dx[j] = empty ? T(0) : g[j] - std::exp(logp[j]) * sum;
  }
}

}  // namespace tessera::kernels::naive
