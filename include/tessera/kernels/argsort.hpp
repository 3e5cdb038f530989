// SPDX-License-Identifier: Apache-2.0
// The order of elements along one axis.
#pragma once

#include <tessera/kernels/parallel.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace tessera::kernels {

/// Array (outer, n, inner), result (outer, k, inner): positions of the first k elements in order.
struct argsort_problem {
  std::int64_t outer = 1, n = 1, inner = 1, k = 1;
  bool descending = false;
};

namespace detail {

template <class T>
using sort_word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// A word that compares as x does: NaN is above all else, -0 equals 0.
template <class T>
sort_word<T> sort_key(T x) {
  using word = sort_word<T>;
  constexpr word top = word{1} << (8 * sizeof(word) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return std::numeric_limits<word>::max();
    const word bits = std::bit_cast<word>(x == 0 ? T{0} : x);
    return bits & top ? ~bits : bits | top;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<word>(x) ^ top;
  } else {
    return x;
  }
}

/// An element on its way: equal keys keep the order of their places.
template <class Word>
struct sort_entry {
  Word key;
  std::int32_t place;
  friend bool operator<(const sort_entry& a, const sort_entry& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

}  // namespace detail

/// out[o, j, c] = the place i of the element in[o, i, c] that is number j in ascending (or descending) order, j < k.
/// Equal elements keep their order; NaN counts as largest. A thread keeps the memory it needs for one line.
template <class T>
void argsort(const argsort_problem& p, const T* in, std::int32_t* out, bool parallel) {
  using entry = detail::sort_entry<detail::sort_word<T>>;
  parallel_for(p.outer * p.inner, parallel, [&](std::int64_t line) {
    thread_local std::vector<entry> entries;
    entries.resize(std::max(entries.size(), static_cast<std::size_t>(p.n)));
    const std::int64_t o = line / p.inner;
    const std::int64_t c = line % p.inner;
    for (std::int64_t i = 0; i < p.n; ++i) {
      const auto key = detail::sort_key(in[(o * p.n + i) * p.inner + c]);
      entries[static_cast<std::size_t>(i)] = {p.descending ? static_cast<decltype(key)>(~key) : key,
                                              static_cast<std::int32_t>(i)};
    }
    const auto begin = entries.begin();
    if (2 * p.k < p.n) std::partial_sort(begin, begin + p.k, begin + p.n);
    else std::sort(begin, begin + p.n);
    for (std::int64_t j = 0; j < p.k; ++j)
      out[(o * p.k + j) * p.inner + c] = entries[static_cast<std::size_t>(j)].place;
  });
}

}  // namespace tessera::kernels
