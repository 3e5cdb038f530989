// SPDX-License-Identifier: Apache-2.0
// Sums, maxima, minima and products along one axis of an array, and across the shards of an all-reduce.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <tessera/core/error.hpp>
#include <tessera/kernels/detail/combine.hpp>
#include <tessera/kernels/parallel.hpp>

namespace tessera::kernels {

enum class reduce_kind { sum, max, min, prod };

/// What a reduction of no elements gives: 0, 1 (prod), or the least (max) or greatest (min) value of T, infinite where
/// T has infinities.
template <class T>
constexpr T reduce_identity(reduce_kind kind) {
  using limits = std::numeric_limits<T>;
  if (kind == reduce_kind::sum) return T(0);
  if (kind == reduce_kind::prod) return T(1);
  if constexpr (limits::has_infinity) return kind == reduce_kind::max ? -limits::infinity() : limits::infinity();
  return kind == reduce_kind::max ? limits::lowest() : limits::max();
}

namespace detail {

template <class T>
struct add {
  T identity = T(0);

  batch<T> operator()(const batch<T>& a, const batch<T>& b) const { return a + b; }
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    else return a + b;
  }
};

template <class T>
struct multiply {
  T identity = T(1);

  batch<T> operator()(const batch<T>& a, const batch<T>& b) const { return a * b; }
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
    else return a * b;
  }
};

/// The larger (Max) or smaller of two, NaN if either is: a vector unit's own max drops a NaN on one side. In xsimd 8.1
/// only isnan finds it: b != b is false for NaN on AVX and AVX-512.
template <class T, bool Max>
struct extreme {
  T identity;

  batch<T> operator()(const batch<T>& a, const batch<T>& b) const {
    if constexpr (std::is_integral_v<T>) return Max ? xsimd::max(a, b) : xsimd::min(a, b);
    else return xsimd::select(xsimd::isnan(b), b, Max ? xsimd::max(b, a) : xsimd::min(b, a));
  }
  T operator()(T a, T b) const { return (Max ? b > a : b < a) || b != b ? b : a; }
};

/// bool is stored as bytes 0 and 1, whose max is `or` and whose min is `and`; 16-bit numbers are reduced in float.
template <class T>
using reduced_as = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, compute_t<T>>;
/// Such elements in memory.
template <class T>
using stored_as = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Calls f(op) with the operation of `kind` on what T is reduced as.
template <class T, class F>
void with_operation(reduce_kind kind, F&& f) {
  using U = reduced_as<T>;
  const auto identity = static_cast<U>(reduce_identity<compute_t<T>>(kind));
  if constexpr (sizeof(U) > 1)
    if (kind == reduce_kind::prod) return f(multiply<U>{identity});
  if (kind == reduce_kind::sum) f(add<U>{identity});
  else if (kind == reduce_kind::max) f(extreme<U, true>{identity});
  else f(extreme<U, false>{identity});
}

/// Calls f(op) with that of a kind known to the compiler.
template <class T, reduce_kind Kind, class F>
void with_operation_of(F&& f) {
  using U = reduced_as<T>;
  const auto identity = static_cast<U>(reduce_identity<compute_t<T>>(Kind));
  if constexpr (Kind == reduce_kind::prod) f(multiply<U>{identity});
  else if constexpr (Kind == reduce_kind::sum) f(add<U>{identity});
  else f(extreme<U, Kind == reduce_kind::max>{identity});
}

/// Lines of at least this many rows of lanes are cut into line_parts parts, also when one thread does them all.
inline constexpr std::int64_t long_line = 512;
inline constexpr std::int64_t line_parts = 64;

/// A line in memory.
template <class T, class In>
struct stored_line {
  const In* in;

  stored_line of_thread() const { return *this; }
  const In* at(std::int64_t first, std::int64_t) const { return in + first; }
  template <class Op>
  lane_set<T> combined(const Op& op, std::int64_t first_row, std::int64_t last_row) const {
    return combine_leaves_of<T>(op, first_row, last_row, [&](std::int64_t first, std::int64_t last) {
      const In* const leaf = in + first * lane_count<T>;
      return combine_leaf<T>(op, leaf, last - first, leaf + 2048 / sizeof(In));
    });
  }
};

/// A line whose elements `make(first, count, to)` makes, a leaf at a time.
template <class T, class In, class Make>
struct made_line {
  Make make;
  alignas(64) In leaf[rows_in_sequence * lane_count<T>];

  explicit made_line(const Make& makes) : make(makes) {}
  made_line of_thread() const { return made_line(make); }
  const In* at(std::int64_t first, std::int64_t last) {
    make(first, last - first, leaf);
    return leaf;
  }
  /// Rows of lanes that `make` combines itself, if it can, else leaf by leaf.
  template <class Op>
  lane_set<T> combined(const Op& op, std::int64_t first_row, std::int64_t last_row) const {
    if constexpr (std::is_same_v<T, In> && requires { make.combines(); })
      if (make.combines()) {
        alignas(64) T lanes[lane_count<T>];
        make.combine(first_row * lane_count<T>, (last_row - first_row) * lane_count<T>, lanes);
        lane_set<T> total;
        for (std::size_t j = 0; j < total.size(); ++j)
          total[j] = load_whole(lanes + static_cast<std::int64_t>(j) * width<T>);
        return total;
      }
    made_line own = of_thread();
    return combine_leaves_of<T>(op, first_row, last_row, [&](std::int64_t first, std::int64_t last) {
      const In* const at = own.at(first * lane_count<T>, last * lane_count<T>);
      return combine_leaf<T>(op, at, last - first, at);
    });
  }
};

/// The elements of a long line of n combined.
template <class T, class In, class Op, class Line>
T combine_long_line(const Op& op, const Line& line, std::int64_t n, bool parallel) {
  const std::int64_t rows = n / lane_count<T>;
  alignas(64) T partial[line_parts * lane_count<T>];
  parallel_for(line_parts, parallel, [&](std::int64_t i) {
    const lane_set<T> total = line.combined(op, rows * i / line_parts, rows * (i + 1) / line_parts);
    for (std::size_t j = 0; j < total.size(); ++j)
      total[j].store_unaligned(partial + i * lane_count<T> + static_cast<std::int64_t>(j) * width<T>);
  });
  const T body = combine_line<T>(op, line_parts * lane_count<T>, [&partial](std::int64_t i, std::int64_t) {
    return batch<T>::load_unaligned(partial + i);
  });
  T tail = op.identity;
  const std::int64_t whole = rows * lane_count<T>;
  if (whole == n) return op(body, tail);
  auto rest = line.of_thread();
  const In* const at = rest.at(whole, n);
  for (std::int64_t i = 0; i < n - whole; ++i) tail = op(tail, T{at[i]});
  return op(body, tail);
}

/// out[o] = in[o][0] op ... op in[o][n - 1].
template <class T, class In, class Op>
void reduce_lines(const Op& op, const In* in, T* out, std::int64_t outer, std::int64_t n, bool parallel) {
  if (n / lane_count<T> >= long_line) {
    const bool one_by_one = outer < line_parts;
    parallel_for(outer, parallel && !one_by_one, [&](std::int64_t o) {
      out[o] = combine_long_line<T, In>(op, stored_line<T, In>{in + o * n}, n, parallel && one_by_one);
    });
    return;
  }
  parallel_for(outer, parallel, [&](std::int64_t o) {
    out[o] = combine_line<T>(
        op, n, [&](std::int64_t i, std::int64_t count) { return load_part(in + o * n + i, count, op.identity); });
  });
}

/// Columns whose rows are folded at once: rows of 4 KiB are long enough for the processor to read ahead, and all
/// partial results stay in the second cache.
template <class T>
inline constexpr std::int64_t strip_columns = 4096 / static_cast<std::int64_t>(sizeof(T));

/// Parts into which the rows of a strip are cut, also when one thread does them all.
inline constexpr int log_strip_parts = 4;
inline constexpr std::int64_t strip_parts = std::int64_t{1} << log_strip_parts;

/// `columns` <= strip_columns neighbours of every row, the rows being `inner` elements apart.
template <class T, class In, class Op>
struct column_strip {
  const Op& op;
  const In* in;
  /// The end of the whole array: batches are read up to here, into the next row, and what is too much is dropped.
  const In* end;
  std::int64_t inner;
  std::int64_t columns;

  /// to[c] = identity op in[first][c] op ... op in[last - 1][c], all rows read side by side.
  void fold_leaf(std::int64_t first, std::int64_t last, T* to) const {
    constexpr std::int64_t pair = 2 * width<T>;
    std::int64_t c = 0;
    for (; c + pair <= columns; c += pair) {
      batch<T> left(op.identity), right(op.identity);
      const In* at = in + first * inner + c;
      for (std::int64_t row = first; row < last; ++row, at += inner)
        left = op(left, load_whole(at)), right = op(right, load_whole(at + width<T>));
      store_whole(to + c, left), store_whole(to + c + width<T>, right);
    }
    for (; c < columns; c += width<T>) {
      batch<T> total(op.identity);
      for (std::int64_t row = first; row < last; ++row) {
        const In* const at = in + row * inner + c;
        total = op(total, load_part(at, end - at, op.identity));
      }
      store_part(to + c, columns - c, total);
    }
  }

  /// The same rows of so few columns that all partial results stay in registers.
  void fold_batch(std::int64_t first, std::int64_t last, T* to) const {
    const lane_set<T, 1> total = combine_rows<T, 1>(op, first, last, [this](std::int64_t row, std::size_t) {
      const In* const at = in + row * inner;
      return load_part(at, end - at, op.identity);
    });
    store_part(to, columns, total[0]);
  }

  /// to[c] = to[c] op rest[c].
  void add(T* to, const T* rest) const {
    for (std::int64_t c = 0; c < columns; c += width<T>)
      store_part(to + c, columns - c,
                 op(load_part(to + c, columns - c, op.identity), load_part(rest + c, columns - c, op.identity)));
  }

  /// Rows [first, last) pairwise over leaves of rows_in_sequence, in the order of combine_rows.
  void fold(std::int64_t first, std::int64_t last, T* to) const {
    if (columns <= width<T>) return fold_batch(first, last, to);
    if (last - first <= rows_in_sequence) return fold_leaf(first, last, to);
    alignas(batch<T>) T rest[strip_columns<T>];
    const std::int64_t middle = half_of_rows(first, last);
    fold(first, middle, to);
    fold(middle, last, rest);
    add(to, rest);
  }

  /// Rows [first, last) like `fold`, the first `levels` halvings by threads of their own. At least 2^levels leaves.
  void fold_in_parallel(std::int64_t rows, T* to) const {
    alignas(batch<T>) T partial[strip_parts][strip_columns<T>];
    parallel_for(strip_parts, true, [&](std::int64_t part) {
      std::int64_t first = 0, last = rows;
      for (int level = log_strip_parts - 1; level >= 0; --level)
        ((part >> level & 1) == 0 ? last : first) = half_of_rows(first, last);
      fold(first, last, partial[part]);
    });
    for (std::int64_t step = 1; step < strip_parts; step *= 2)
      for (std::int64_t part = 0; part < strip_parts; part += 2 * step) add(partial[part], partial[part + step]);
    std::copy_n(partial[0], columns, to);
  }
};

/// out[o][c] = in[o][0][c] op ... op in[o][n - 1][c], by strips of columns.
template <class T, class In, class Op>
void reduce_columns(const Op& op, const In* in, T* out, std::int64_t outer, std::int64_t n, std::int64_t inner,
                    bool parallel) {
  const std::int64_t strips = (inner + strip_columns<T> - 1) / strip_columns<T>;
  const In* const end = in + outer * n * inner;
  const bool by_rows = outer * strips < strip_parts && n >= strip_parts * rows_in_sequence;
  parallel_for(outer * strips, parallel && !by_rows, [&](std::int64_t task) {
    const std::int64_t o = task / strips, column = task % strips * strip_columns<T>;
    const column_strip<T, In, Op> strip{op, in + o * n * inner + column, end, inner,
                                        std::min(strip_columns<T>, inner - column)};
    T* const to = out + o * inner + column;
    if (parallel && by_rows) strip.fold_in_parallel(n, to);
    else strip.fold(0, n, to);
  });
}

template <class T>
void check_kind(const char* operation, reduce_kind kind) {
  if (sizeof(T) == 1 && kind != reduce_kind::max && kind != reduce_kind::min)
    throw value_error("tessera: " + std::string(operation) + ": kind is " +
                      (kind == reduce_kind::sum ? "sum" : "prod") + " for bool; it must be max (or) or min (and)");
}

/// load(first) op ... op load(first + count - 1), half by half: as combine_rows combines blocks of rows.
template <class T, class Op, class Load>
batch<T> combine_halves(const Op& op, int first, int count, const Load& load) {
  if (count == 1) return load(first);
  const int half = count / 2;
  const batch<T> left = combine_halves<T>(op, first, half, load);
  return op(left, combine_halves<T>(op, first + half, count - half, load));
}

/// Below this many elements a second thread costs more than it brings.
inline constexpr std::int64_t worth_reducing_in_parallel = std::int64_t{1} << 15;

}  // namespace detail

/// out[o][c] = in[o][0][c] op in[o][1][c] op ... op in[o][n-1][c], for a contiguous array in[outer][n][inner].
///
/// T is float, double, std::int32_t, std::uint32_t, bool (max is `or`, min is `and`; no sum, no product), or a 16-bit
/// number, whose reductions are floats. Integer sums and products wrap around. max and min give NaN if any element is
/// NaN. n == 0 gives reduce_identity. `out` must not overlap `in`.
///
/// Bits: the order of combination depends on n and on whether inner is 1, on nothing else. Sums are pairwise over
/// blocks, so the relative error of a sum of n positive floats is at most about (32 + log2 n) * 2^-24.
///
/// Source: N. J. Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14 (1993).
template <class T>
void reduce(reduce_kind kind, const T* in, compute_t<T>* out, std::int64_t outer, std::int64_t n, std::int64_t inner,
            bool parallel) {
  detail::check_kind<T>("reduce", kind);
  using U = detail::reduced_as<T>;
  const auto* const from = reinterpret_cast<const detail::stored_as<T>*>(in);
  auto* const to = reinterpret_cast<U*>(out);
  const bool many = parallel && outer * n * inner >= detail::worth_reducing_in_parallel;
  detail::with_operation<T>(kind, [&](const auto& op) {
    if (inner == 1) detail::reduce_lines<U>(op, from, to, outer, n, many);
    else detail::reduce_columns<U>(op, from, to, outer, n, inner, many);
  });
}

/// out[0] = the elements combined of a line of n, which `make(first, count, to)` makes, each once, on any thread; or
/// which, if make.combines(), `make.combine(first, count, lanes)` combines by whole rows of lanes as combine_rows does.
/// n is at least 512 x 256 bytes of accumulators. Types and bits: as reduce of the line in memory.
template <class T, class Make>
void reduce_made(reduce_kind kind, const Make& make, compute_t<T>* out, std::int64_t n, bool parallel) {
  detail::check_kind<T>("reduce", kind);
  using U = detail::reduced_as<T>;
  using In = detail::stored_as<T>;
  const detail::made_line<U, In, Make> line(make);
  detail::with_operation<T>(kind, [&](const auto& op) {
    *reinterpret_cast<U*>(out) = detail::combine_long_line<U, In>(op, line, n, parallel);
  });
}

/// out[c] = leaf[0][c] op leaf[1][c] op ..., where each leaf is `reduce` of 32 rows (the last one of the rest): bits as
/// reduce of all rows with inner > 1.
template <class T>
void combine_leaves(reduce_kind kind, const compute_t<T>* leaf, compute_t<T>* out, std::int64_t leaves,
                    std::int64_t inner) {
  using U = detail::reduced_as<T>;
  const auto* const from = reinterpret_cast<const U*>(leaf);
  detail::with_operation<T>(kind, [&](const auto& op) {
    for (std::int64_t c = 0; c < inner; c += detail::width<U>) {
      const auto load = [&](int i) { return detail::load_part(from + i * inner + c, inner - c, op.identity); };
      detail::store_part(reinterpret_cast<U*>(out) + c, inner - c,
                         detail::combine_halves<U>(op, 0, static_cast<int>(leaves), load));
    }
  });
}

/// out[i] = in[0][i] op in[1][i] op ... op in[shards-1][i] for i < n: the body of an all-reduce.
///
/// Bits: the first half of the shards (rounded down) is combined, then the rest, then the two, and so on within each.
/// So where a power of two of shards each hold the sum of as many whole blocks of 32 rows, `reduce` of all rows along
/// an axis with inner > 1 gives the same bits.
///
/// Types, NaN and wrapping as in reduce, but 16-bit numbers are rounded to their type at the end. `out` may be any of
/// the inputs, but must not overlap one otherwise. Throws value_error if shards < 1.
template <class T>
void add_shards(reduce_kind kind, T* out, const T* const* in, int shards, std::int64_t n, bool parallel) {
  detail::check_kind<T>("add_shards", kind);
  if (shards < 1)
    throw value_error("tessera: add_shards: shards is " + std::to_string(shards) + "; it must be at least 1");
  using U = detail::reduced_as<T>;
  using stored = detail::stored_as<T>;
  constexpr std::int64_t chunk = 8 * detail::lane_count<U>;
  const bool many = parallel && shards * n >= detail::worth_reducing_in_parallel;
  detail::with_operation<T>(kind, [&](const auto& op) {
    parallel_for((n + chunk - 1) / chunk, many, [&](std::int64_t task) {
      const std::int64_t end = std::min(n, (task + 1) * chunk);
      for (std::int64_t i = task * chunk; i < end; i += detail::width<U>) {
        const auto load = [&](int s) {
          return detail::load_part(reinterpret_cast<const stored*>(in[s]) + i, end - i, op.identity);
        };
        detail::store_part(reinterpret_cast<stored*>(out) + i, end - i, detail::combine_halves<U>(op, 0, shards, load));
      }
    });
  });
}

}  // namespace tessera::kernels
