// SPDX-License-Identifier: Apache-2.0
// How a fused kernel is called: what is the same for all of them, compiled once.
#pragma once

#include <tessera/core/compiled.hpp>

#include <cstddef>
#include <cstdint>

#if defined(TESSERA_COMPILED)
#include <tessera/core/dtype.hpp>
#include <tessera/graph/program.hpp>

#include <cstring>
#endif

namespace tessera::kernels {

/// Arrays one fused call reads or writes at most.
inline constexpr int max_fused_arrays = 80;

/// The arguments of a fused kernel: extents, and for each source and result its memory and element strides. A source
/// without memory counts from `base`.
struct fused_call {
  int rank = 0;
  const std::int64_t* extents = nullptr;
  void* data[max_fused_arrays];
  const std::int64_t* strides[max_fused_arrays];
  std::int64_t base[max_fused_arrays];

  std::int64_t columns() const { return rank == 0 ? 1 : extents[rank - 1]; }
  std::int64_t rows() const {
    std::int64_t n = 1;
    for (int d = 0; d + 1 < rank; ++d) n *= extents[d];
    return n;
  }
};

/// Part of a call: rows (all dimensions but the last) and columns from, to; and where they are combined instead of
/// stored, see fused_line.
struct fused_range {
  std::int64_t first_row, last_row, first_column, last_column;
  void* lanes = nullptr;
};

using fused_function = void (*)(const fused_call&, const fused_range&);

/// Neighbours along the last dimension. By array: where the first element lies, the stride to the next one (of strided
/// sources), the first number (of sources without memory), and from how many bytes behind the element that is read or
/// written memory is fetched already (of contiguous sources, and results).
struct fused_row {
  static constexpr std::int64_t usually_ahead = 2048;

  std::byte* at[max_fused_arrays];
  std::int64_t strides[max_fused_arrays];
  std::int64_t counts[max_fused_arrays];
  std::int64_t ahead[max_fused_arrays];
};

/// An instruction list over the first `vectors` vectors of a row.
using fused_loop = void (*)(const fused_row& row, std::int64_t vectors);

/// Bytes a vector has at most.
inline constexpr std::int64_t max_vector_bytes = 64;

/// Runs a loop over all rows of a range. `words` is its instruction list, `width` the elements of a vector. A partial
/// vector at the end of a row goes through the same loop, from and to memory beside the arrays, so an element's bits do
/// not depend on where it stands.
void run_fused_rows(const int* words, std::int64_t width, fused_loop loop, const fused_call& call,
                    const fused_range& range);

#if defined(TESSERA_COMPILED)

/// The arrays of an instruction list as memory: element sizes, and how sources are read.
struct fused_arrays {
  int sources;
  int all;
  std::int64_t sizes[max_fused_arrays];
  graph::source_mode modes[max_fused_arrays];

  explicit fused_arrays(const int* words) : sources(words[1]), all(words[1] + words[3]) {
    const int* at = words + 4;
    for (int i = 0; i < sources; ++i, at += 2) add(i, at[0], static_cast<graph::source_mode>(at[1]));
    at += 6 * words[2];
    for (int i = sources; i < all; ++i, at += 2) add(i, at[0], graph::source_mode::contiguous);
  }

  /// Whether a source is the position itself, and no memory.
  bool counts(int a) const {
    return modes[a] == graph::source_mode::count || modes[a] == graph::source_mode::count_repeated;
  }
  /// Whether each column has an element of its own in memory.
  bool moves(int a) const {
    return modes[a] == graph::source_mode::contiguous || modes[a] == graph::source_mode::strided;
  }

 private:
  void add(int i, int type, graph::source_mode mode) {
    sizes[i] = info(static_cast<dtype>(type)).size;
    modes[i] = mode;
  }
};

/// One fused loop over the rows of a call.
struct fused_rows {
  fused_arrays arrays;
  std::int64_t width;
  fused_loop loop;
  const fused_call& call;
  fused_row row;
  fused_row padded;
  std::int64_t line_strides[max_fused_arrays];  ///< from row to row, in elements
  std::int64_t line_bytes[max_fused_arrays];    ///< and in bytes of memory
  alignas(max_vector_bytes) std::byte room[max_fused_arrays][static_cast<std::size_t>(max_vector_bytes)];

  fused_rows(const int* words, std::int64_t lanes, fused_loop what, const fused_call& c, const fused_range& range)
      : arrays(words), width(lanes), loop(what), call(c) {
    for (int a = 0; a < arrays.all; ++a) {
      row.strides[a] = column_stride(a);
      padded.strides[a] = 1;
      line_strides[a] = call.rank < 2 ? 0 : call.strides[a][call.rank - 2];
      line_bytes[a] = arrays.counts(a) ? 0 : line_strides[a] * arrays.sizes[a];
      row.ahead[a] = in_short_pieces(a, range) ? 2 * line_bytes[a] : fused_row::usually_ahead;
      padded.ahead[a] = 0;
      if (arrays.counts(a)) row.at[a] = nullptr;
    }
  }

  /// Whether rows of a range are less than a page each, with others' memory between them: what is behind the end of one
  /// is not needed then, but what comes two rows later is, and processors do not foresee it.
  bool in_short_pieces(int a, const fused_range& range) const {
    const std::int64_t bytes = (range.last_column - range.first_column) * arrays.sizes[a];
    return range.last_row - range.first_row > 2 && bytes <= 4096 && bytes < line_bytes[a];
  }

  /// What an array moves on by from column to column, in elements.
  std::int64_t column_stride(int a) const {
    switch (arrays.modes[a]) {
      case graph::source_mode::contiguous:
      case graph::source_mode::count: return 1;
      case graph::source_mode::strided: return call.strides[a][call.rank - 1];
      default: return 0;
    }
  }

  /// Columns from `column` on of row `number`.
  void start(std::int64_t number, std::int64_t column) {
    for (int a = 0; a < arrays.all; ++a) row.counts[a] = column * row.strides[a];
    for (int d = call.rank - 2; d >= 0; --d) {
      const std::int64_t at = number % call.extents[d];
      number /= call.extents[d];
      for (int a = 0; a < arrays.all; ++a) row.counts[a] += at * call.strides[a][d];
    }
    for (int a = 0; a < arrays.all; ++a) {
      if (arrays.counts(a)) row.counts[a] += call.base[a];
      else row.at[a] = static_cast<std::byte*>(call.data[a]) + row.counts[a] * arrays.sizes[a];
    }
  }

  /// Rows up to the end of the line of rows that `number` stands in, itself among them.
  std::int64_t rows_in_line(std::int64_t number) const {
    return call.rank < 2 ? 1 : call.extents[call.rank - 2] - number % call.extents[call.rank - 2];
  }

  /// The same columns of the next row of the line.
  void step() {
    for (int a = 0; a < arrays.all; ++a) {
      row.counts[a] += line_strides[a];
      row.at[a] += line_bytes[a];
    }
  }

  /// The last `count` elements of `row`, behind `done` others.
  void finish(std::int64_t done, std::int64_t count) {
    for (int a = 0; a < arrays.all; ++a) {
      padded.counts[a] = row.counts[a] + done * row.strides[a];
      padded.at[a] = row.at[a];
      if (!arrays.moves(a)) continue;
      padded.at[a] = room[a];
      if (a < arrays.sources) fill_room(a, done, count);
    }
    loop(padded, 1);
    for (int a = arrays.sources; a < arrays.all; ++a)
      std::memcpy(row.at[a] + done * arrays.sizes[a], room[a], static_cast<std::size_t>(count * arrays.sizes[a]));
  }

  /// `count` elements of a source side by side, zeros behind them.
  void fill_room(int a, std::int64_t done, std::int64_t count) {
    const std::int64_t step = row.strides[a] * arrays.sizes[a];
    const auto size = static_cast<std::size_t>(arrays.sizes[a]);
    const std::byte* from = row.at[a] + done * step;
    std::memset(room[a], 0, sizeof room[a]);
    if (row.strides[a] == 1) std::memcpy(room[a], from, static_cast<std::size_t>(count) * size);
    else
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(room[a] + static_cast<std::size_t>(i) * size, from + i * step, size);
  }
};

TESSERA_COMPILED void run_fused_rows(const int* words, std::int64_t width, fused_loop loop, const fused_call& call,
                                     const fused_range& range) {
  const std::int64_t columns = range.last_column - range.first_column;
  fused_rows rows(words, width, loop, call, range);
  const std::int64_t whole = columns / width;
  std::int64_t in_line = 0;
  for (std::int64_t number = range.first_row; number < range.last_row; ++number, --in_line) {
    if (in_line > 0) {
      rows.step();
    } else {
      rows.start(number, range.first_column);
      in_line = rows.rows_in_line(number);
    }
    if (whole > 0) loop(rows.row, whole);
    if (columns > whole * width) rows.finish(whole * width, columns - whole * width);
  }
}

#endif

}  // namespace tessera::kernels
