// SPDX-License-Identifier: Apache-2.0
// How many elements become one: the order of every reduction, for any instruction set and number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <tessera/kernels/arch/halves.hpp>
#include <tessera/kernels/detail/simd.hpp>

namespace tessera::kernels::detail {

/// Elements combined side by side: 256 bytes on every instruction set, so that the vector width changes no order.
template <class T>
inline constexpr std::int64_t lane_count = 256 / static_cast<std::int64_t>(sizeof(T));

template <class T>
inline constexpr std::int64_t lane_batches = lane_count<T> / width<T>;

/// One element a lane, or the first Batches batches of them.
template <class T, std::int64_t Batches = lane_batches<T>>
using lane_set = std::array<batch<T>, static_cast<std::size_t>(Batches)>;

/// Rows combined one after the other before pairs of such blocks are combined: keeps the error of a sum of n rows at
/// (32 + log2(n / 32)) roundings, and the cost of the pairs at a few per cent.
inline constexpr std::int64_t rows_in_sequence = 32;

/// Where more than rows_in_sequence rows are halved: between blocks, of which the second half has at most one more.
constexpr std::int64_t half_of_rows(std::int64_t first, std::int64_t last) {
  const std::int64_t blocks = (last - first + rows_in_sequence - 1) / rows_in_sequence;
  return first + blocks / 2 * rows_in_sequence;
}

/// Combines rows [first, last) of lanes pairwise over leaves of rows_in_sequence, where leaf(first, last) is what the
/// rows of one have in every lane.
template <class T, std::int64_t Batches = lane_batches<T>, class Op, class Leaf>
lane_set<T, Batches> combine_leaves_of(const Op& op, std::int64_t first, std::int64_t last, const Leaf& leaf) {
  if (last - first <= rows_in_sequence) return leaf(first, last);
  const std::int64_t middle = half_of_rows(first, last);
  lane_set<T, Batches> total = combine_leaves_of<T, Batches>(op, first, middle, leaf);
  const lane_set<T, Batches> rest = combine_leaves_of<T, Batches>(op, middle, last, leaf);
  for (std::size_t j = 0; j < total.size(); ++j) total[j] = op(total[j], rest[j]);
  return total;
}

/// The same, where load(row, j) is batch j of a row.
template <class T, std::int64_t Batches = lane_batches<T>, class Op, class Load>
lane_set<T, Batches> combine_rows(const Op& op, std::int64_t first, std::int64_t last, const Load& load) {
  return combine_leaves_of<T, Batches>(op, first, last, [&](std::int64_t from, std::int64_t to) {
    lane_set<T, Batches> total;
    total.fill(batch<T>(op.identity));
    for (std::int64_t row = from; row < to; ++row)
      for (std::size_t j = 0; j < total.size(); ++j) total[j] = op(total[j], load(row, j));
    return total;
  });
}

/// The rows of a leaf, which lie one behind the other, while as many bytes of memory at `next` are asked for.
template <class T, class Op, class In>
lane_set<T> combine_leaf(const Op& op, const In* in, std::int64_t rows, const void* next) {
  const auto* ask = static_cast<const std::byte*>(next);
  lane_set<T> total;
  total.fill(batch<T>(op.identity));
  for (const In* const end = in + rows * lane_count<T>; in != end; in += lane_count<T>)
    for (std::size_t j = 0; j < total.size(); ++j, ask += width<T> * sizeof(In)) {
      __builtin_prefetch(ask);
      total[j] = op(total[j], load_whole(in + static_cast<std::int64_t>(j) * width<T>));
    }
  return total;
}

/// The lanes combined into one element: lane i with lane i + half, halving until one is left.
template <class T, class Op>
T combine_across(const Op& op, lane_set<T> total) {
  for (std::size_t half = total.size() / 2; half > 0; half /= 2)
    for (std::size_t j = 0; j < half; ++j) total[j] = op(total[j], total[j + half]);
  if constexpr (moves_down<T>) {
    batch<T> all = op(total[0], moved_down<8>(total[0]));
    all = op(all, moved_down<4>(all));
    all = op(all, moved_down<2>(all));
    return op(all, moved_down<1>(all)).get(0);
  }
  alignas(batch<T>) T row[width<T>];
  total[0].store_aligned(row);
  for (std::int64_t half = width<T> / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) row[i] = op(row[i], row[i + half]);
  return row[0];
}

/// Combines elements [0, n): element i goes into lane i % lane_count, then the lanes are combined. `load(i, count)` is
/// the batch of elements i, i + 1, ..., whose lanes from `count` on are the identity of `op`.
template <class T, class Op, class Load>
T combine_line(const Op& op, std::int64_t n, const Load& load) {
  const std::int64_t rows = n / lane_count<T>;
  lane_set<T> total = combine_rows<T>(op, 0, rows, [&load](std::int64_t row, std::size_t j) {
    return load(row * lane_count<T> + static_cast<std::int64_t>(j) * width<T>, width<T>);
  });
  std::int64_t at = rows * lane_count<T>;
  for (std::size_t j = 0; at < n; ++j, at += width<T>) total[j] = op(total[j], load(at, std::min(width<T>, n - at)));
  return combine_across<T>(op, total);
}

}  // namespace tessera::kernels::detail
