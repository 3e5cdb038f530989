// SPDX-License-Identifier: Apache-2.0
// Reading and writing elements chosen by integers.
#pragma once

#include <tessera/kernels/parallel.hpp>
#include <tessera/sharding/gather.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tessera::kernels {

using sharding::index_mode;
using sharding::scatter_kind;

/// Arrays (B, O, N, C), indices (B, M) or, if `pointwise`, (B, M, C), chosen elements (B, O, M, C). The array is the
/// part from position `first` of a dimension of extent `whole`; indices count in the whole.
struct gather_problem {
  std::int64_t batch = 1, outer = 1, n = 1, m = 1, inner = 1;
  std::int64_t whole = 1;
  std::int64_t first = 0;
  bool pointwise = false;
  index_mode mode = index_mode::drop;
  scatter_kind kind = scatter_kind::add;
  const void* indices = nullptr;
  bool has_sign = true;  ///< indices are int32, else uint32

  /// The place in the part of index number `i`, or -1.
  std::int64_t place(std::int64_t i) const {
    std::int64_t at = has_sign ? std::int64_t{static_cast<const std::int32_t*>(indices)[i]}
                               : std::int64_t{static_cast<const std::uint32_t*>(indices)[i]};
    switch (mode) {
      case index_mode::drop: at += at < 0 ? whole : 0; break;
      case index_mode::clip: at = std::clamp<std::int64_t>(at, 0, whole - 1); break;
      case index_mode::wrap: at = (at % whole + whole) % whole; break;
    }
    at -= first;
    return at >= 0 && at < n && at + first < whole ? at : -1;
  }

  std::int64_t array_size() const { return batch * outer * n * inner; }
  std::int64_t chosen_size() const { return batch * outer * m * inner; }
};

/// out[b, o, j, c] = array[b, o, index[b, j], c], 0 where the index is nowhere.
template <class T>
void gather(const gather_problem& p, const T* array, T* out, bool parallel) {
  const std::int64_t rows = p.batch * p.outer * p.m;
  if (rows == 0 || p.inner == 0) return;
  const std::int64_t rows_a_task = std::max<std::int64_t>(1, 16384 / p.inner);
  parallel_for((rows + rows_a_task - 1) / rows_a_task, parallel, [&](std::int64_t task) {
    for (std::int64_t row = task * rows_a_task; row < std::min(rows, (task + 1) * rows_a_task); ++row) {
      const std::int64_t b = row / p.m / p.outer;
      const std::int64_t j = row % p.m;
      const T* from = array + row / p.m * p.n * p.inner;
      T* to = out + row * p.inner;
      if (p.pointwise) {
        for (std::int64_t c = 0; c < p.inner; ++c) {
          const std::int64_t at = p.place((b * p.m + j) * p.inner + c);
          to[c] = at < 0 ? T(0) : from[at * p.inner + c];
        }
      } else if (const std::int64_t at = p.place(b * p.m + j); at < 0) {
        std::fill_n(to, p.inner, T(0));
      } else {
        std::memcpy(static_cast<void*>(to), from + at * p.inner, static_cast<std::size_t>(p.inner) * sizeof(T));
      }
    }
  });
}

/// What is left of `old` after an update; NaN wins over numbers.
template <class T>
T scattered(scatter_kind kind, T old, T update) {
  switch (kind) {
    case scatter_kind::add:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint32_t>(old) + static_cast<std::uint32_t>(update));
      else return old + update;
    case scatter_kind::max: return old < update || update != update ? update : old;
    case scatter_kind::min: return update < old || update != update ? update : old;
    default: return update;
  }
}

/// array[b, o, index[b, j], c] is updated by updates[b, o, j, c], j in order, so that the result depends on no thread:
/// a task has columns of its own.
template <class T>
void scatter(const gather_problem& p, T* array, const T* updates, bool parallel) {
  constexpr std::int64_t columns_a_task = 64;
  const std::int64_t parts = (p.inner + columns_a_task - 1) / columns_a_task;
  parallel_for(p.batch * p.outer * parts, parallel, [&](std::int64_t task) {
    const std::int64_t block = task / parts;
    const std::int64_t first = task % parts * columns_a_task;
    const std::int64_t last = std::min(p.inner, first + columns_a_task);
    T* to = array + block * p.n * p.inner;
    const T* from = updates + block * p.m * p.inner;
    const auto update_all = [&](auto kind) {
      for (std::int64_t j = 0; j < p.m; ++j, from += p.inner) {
        const std::int64_t index = block / p.outer * p.m + j;
        std::int64_t at = p.pointwise ? 0 : p.place(index);
        if (at < 0) continue;
        for (std::int64_t c = first; c < last; ++c) {
          if (p.pointwise && (at = p.place(index * p.inner + c)) < 0) continue;
          T& old = to[at * p.inner + c];
          old = scattered(kind(), old, from[c]);
        }
      }
    };
    switch (p.kind) {
      case scatter_kind::add: return update_all([] { return scatter_kind::add; });
      case scatter_kind::set: return update_all([] { return scatter_kind::set; });
      case scatter_kind::max: return update_all([] { return scatter_kind::max; });
      case scatter_kind::min: return update_all([] { return scatter_kind::min; });
    }
  });
}

}  // namespace tessera::kernels
