// SPDX-License-Identifier: Apache-2.0
// Matrices with columns at right angles, drawn from normal numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/compiled.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/random/distributions.hpp>

namespace tessera::nn {

/// Columns of a matrix of `rows` >= columns, one after the other, become those of its factor Q, signed so that R has a
/// positive diagonal.
void orthonormalise(std::span<double> columns, std::size_t rows);

#if defined(TESSERA_COMPILED)

/// v - 2 (w . v) / (w . w) w for the elements from `first` on.
inline void reflect(std::span<const double> w, std::span<double> v, double square, std::size_t first) {
  double product = 0;
  for (std::size_t i = first; i < v.size(); ++i) product += w[i] * v[i];
  const double factor = 2 * product / square;
  for (std::size_t i = first; i < v.size(); ++i) v[i] -= factor * w[i];
}

TESSERA_COMPILED void orthonormalise(std::span<double> columns, std::size_t rows) {
  const std::size_t count = rows == 0 ? 0 : columns.size() / rows;
  const auto column = [&](std::span<double> all, std::size_t j) { return all.subspan(j * rows, rows); };
  std::vector<double> mirrors(columns.begin(), columns.end()), squares(count), signs(count);
  for (std::size_t j = 0; j < count; ++j) {
    const std::span<double> w = column(mirrors, j);
    double length = 0;
    for (std::size_t i = j; i < rows; ++i) length += w[i] * w[i];
    length = std::sqrt(length);
    // The diagonal of R becomes -length times the sign of w[j]: no digits are lost in what is left of w.
    signs[j] = w[j] < 0 ? 1 : -1;
    w[j] -= signs[j] * length;
    for (std::size_t i = j; i < rows; ++i) squares[j] += w[i] * w[i];
    if (squares[j] == 0) continue;
    for (std::size_t k = j + 1; k < count; ++k) reflect(w, column(mirrors, k), squares[j], j);
  }
  for (std::size_t j = 0; j < count; ++j) {
    const std::span<double> q = column(columns, j);
    for (double& element : q) element = 0;
    q[j] = signs[j];
    for (std::size_t k = j + 1; k-- > 0;)
      if (squares[k] != 0) reflect(column(mirrors, k), q, squares[k], k);
  }
}

#endif

/// Fills with part of an orthogonal array, whose columns are numbered by one of its dimensions. A rank below 2, or a
/// dimension that is not there, raises shape_error.
template <class T>
void fill_orthogonal(std::span<T> out, random::key k, std::span<const std::int64_t> shape, std::uint64_t first_index,
                     int column_axis) {
  const int rank = static_cast<int>(shape.size());
  const int axis = column_axis < 0 ? column_axis + rank : column_axis;
  if (rank < 2 || axis < 0 || axis >= rank)
    throw shape_error("nn::orthogonal: columns along dimension " + number_text(column_axis) +
                      " need a rank of 2 or more and that dimension; this shape has rank " + number_text(rank));
  std::size_t inner = 1, size = 1;
  for (int d = 0; d < rank; ++d) {
    size *= static_cast<std::size_t>(shape[static_cast<std::size_t>(d)]);
    if (d > axis) inner *= static_cast<std::size_t>(shape[static_cast<std::size_t>(d)]);
  }
  const auto columns = static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
  const std::size_t others = size / columns;
  const bool more_others = columns < others;
  const std::size_t rows = more_others ? others : columns;
  const std::size_t narrow = size / rows;
  std::vector<T> drawn(size);
  random::fill_normal(std::span(drawn), k);
  std::vector<double> q(size);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < narrow; ++c) q[c * rows + r] = static_cast<double>(drawn[r * narrow + c]);
  orthonormalise(q, rows);
  for (std::size_t j = 0; j < out.size(); ++j) {
    const std::size_t i = static_cast<std::size_t>(first_index) + j;
    const std::size_t c = i / inner % columns;
    const std::size_t r = i / (inner * columns) * inner + i % inner;
    out[j] = static_cast<T>(more_others ? q[c * rows + r] : q[r * rows + c]);
  }
}

}  // namespace tessera::nn
