// SPDX-License-Identifier: Apache-2.0
// Products by matrix registers or dot-product instructions, of bfloat16 or of floats in three parts of bfloat16:
// operands packed into tiles, blocks of 32 x 32 of C.
#pragma once

#include <tessera/kernels/arch/bfloat16_parts.hpp>

#if defined(TESSERA_HAS_BFLOAT16_TILES)

#include <tessera/kernels/detail/gemm_run.hpp>
#include <tessera/kernels/detail/tile_pack.hpp>
#include <tessera/kernels/detail/workspace.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

namespace tessera::kernels::detail {

/// A product C (+)= A B of one group, of several that share B, or of several along the depth, as if their steps were
/// those of one. Groups are `group_depth` steps deep, whole tiles if their steps are in a row. Only the first `read` of
/// all steps are read.
template <class T>
struct tiled_product {
  gemm_side<T> a;
  gemm_side<T> b;
  std::int64_t group;  ///< the first one
  std::int64_t rows;   ///< of a group
  std::int64_t group_depth;
  std::int64_t depth;
  std::int64_t read;
  float* c;
  std::int64_t c_step;
  std::int64_t c_stride;  ///< from the rows of one group to those of the next
  bool accumulate;
  bool exchanged;  ///< see gemm_problem
  gemm_finish finish;
  std::int64_t finished_group;

  static constexpr std::int64_t block = 2 * tile_lines;
  static_assert(depth_unit % tile_depth == 0, "blocks of the depth are whole tiles");

  /// Blocks of rows of a group; those of groups that share B are counted on.
  std::int64_t blocks() const { return ceil_div(rows, block); }
};

/// Which of some packed lines hold a special_float.
template <std::int64_t Most>
struct special_lines {
  bool any = false;
  bool at[Most]{};

  void forget() {
    if (any) *this = {};
  }

  /// Looks for special floats in some lines and steps of an operand; the first line is lines `to` here.
  template <class T>
  void mark(const gemm_operand<T>& from, std::int64_t line, std::int64_t lines, gemm_steps steps, std::int64_t to) {
    any = true;
    for (std::int64_t i = 0; i < lines; ++i)
      for (std::int64_t p = steps.start; p < steps.end(); ++p)
        if (special_float(std::bit_cast<std::uint32_t>(*from.at(line + i, p)) & 0x7fffffffU)) at[to + i] = true;
  }

  /// Calls f(first, last) for the longest runs of lines in [line, end) that are special, or that are not.
  template <class F>
  void for_each_run(std::int64_t line, std::int64_t end, bool special, F&& f) const {
    for (; line < end; ++line) {
      if (at[line] != special) continue;
      const std::int64_t first = line;
      while (line < end && at[line] == special) ++line;
      f(first, line);
    }
  }
};

/// Asks for the memory of what will be read soon while something is multiplied, evenly over its steps.
class asking_meanwhile {
 public:
  /// The next `steps` calls ask for all of `rows`.
  void spread(const gemm_rows& rows, std::int64_t steps) {
    constexpr std::int64_t line = gemm_ahead::line;
    rows_ = rows;
    const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(rows.at) % line);
    lines_ = ceil_div(offset + rows.bytes, line);
    rows_.at -= offset;
    left_ = rows.rows * lines_;
    each_ = ceil_div(left_, std::max<std::int64_t>(steps, 1));
    at_line_ = 0;
  }

  void operator()() {
    for (std::int64_t i = 0; i < each_ && left_ > 0; ++i, --left_) {
      __builtin_prefetch(rows_.at + at_line_ * gemm_ahead::line, 0, 2);
      if (++at_line_ == lines_) at_line_ = 0, rows_.at += rows_.leading;
    }
  }

 private:
  gemm_rows rows_;
  std::int64_t lines_ = 0, left_ = 0, each_ = 0, at_line_ = 0;
};

/// Computes rectangles of a product on this thread. Every element is summed tile by tile along the depth, whatever the
/// rectangle.
///
/// Floats are multiplied as sums of three bfloat16 numbers each. Where one has no such parts (special_float), all the
/// products of its line of the operand are fused multiply-adds, over one block of the depth.
template <class T>
class tiled_run {
 public:
  explicit tiled_run(const tiled_product<T>& product)
      : p_(product), packed_a_(reinterpret_cast<bfloat16*>(workspace())), packed_b_(packed_a_ + a_room) {}

  /// Computes blocks of rows [block_begin, block_end) and some columns.
  void operator()(std::int64_t block_begin, std::int64_t block_end, std::int64_t column, std::int64_t last_column) {
    std::optional<matrix_registers> registers;
    if (has_matrix_registers()) registers.emplace();
    const bool few = block_end - block_begin <= few_blocks;
    const std::int64_t at_once = few || p_.a.source ? few_blocks : 1;  // long rows of a transpose that is made
    far_ = (block_end - block_begin) * block * (last_column - column) > far_elements<float>;
    for (std::int64_t d = 0; d < depth_blocks(p_.depth, most_depth); ++d) {
      steps_ = steps_of(d);
      if (steps_.depth <= 0) break;
      padded_ = ceil_div(steps_.depth, tile_depth) * tile_depth;
      const std::int64_t columns = few ? chunk : widest();
      if (few) {
        special_a_.forget();
        for_each_strip(block_begin, block_end, at_once, [&](const strip& rows) { pack_a(rows); });
      }
      for (std::int64_t j = column; j < last_column; j += columns) {
        const std::int64_t last = std::min(last_column, j + columns);
        pack_b(j, last, few && (d > 0 || j > column));
        for_each_strip(block_begin, block_end, at_once, [&](strip rows) {
          if (few) {
            const bool more = last < last_column;
            const std::int64_t next = more ? last : column;
            ask_for_next(p_.b, {next, std::min(last_column, next + chunk)}, p_.group, more ? steps_ : steps_of(d + 1),
                         rows, {j, last});
          } else {
            rows.packed = 0;
            special_a_.forget();
            pack_a(rows);
            const std::int64_t end = rows.lines.end;
            ask_for_next(p_.a, {end, std::min(p_.rows, end + at_once * block)}, rows.group, steps_, rows, {j, last});
          }
          multiply(rows, {j, last});
        });
      }
    }
  }

 private:
  static constexpr bool in_parts = std::is_same_v<T, float>;
  static constexpr std::int64_t parts = in_parts ? 3 : 1;
  static constexpr std::int64_t block = tiled_product<T>::block;

  /// Floats are summed in the blocks of all products of floats: see special_float, and rows that are multiplied block
  /// by block.
  static constexpr std::int64_t most_depth = in_parts ? gemm_depth : 1024;
  static constexpr std::int64_t few_blocks = 4;
  static constexpr std::int64_t a_room = few_blocks * block * most_depth * parts;
  static constexpr std::int64_t b_room = static_cast<std::int64_t>(workspace_bytes - staging_bytes) / 2 - a_room;

  /// Columns that are packed together where rows are few: a piece of each row of memory that is long enough for
  /// processors to fetch ahead.
  static constexpr std::int64_t chunk = 8 * block;

  /// A row of blocks of C is not wider, so that it stays in the second cache, and B where it is in parts.
  static constexpr std::int64_t most_columns = in_parts ? 1408 : 4096;
  std::int64_t widest() const { return std::min(b_room / (parts * padded_) / block * block, most_columns); }

  /// What is larger than this does not stay in the second cache: a mebibyte.
  template <class Element>
  static constexpr std::int64_t far_elements = (std::int64_t{1} << 20) / static_cast<std::int64_t>(sizeof(Element));

  struct range {
    std::int64_t begin = 0, end = 0;

    std::int64_t size() const { return end - begin; }
  };

  /// Neighbouring rows of one group, and how many packed rows lie before them.
  struct strip {
    std::int64_t group = 0;
    range lines;
    std::int64_t packed = 0;
  };

  /// Calls f for the rows of some blocks, at most `at_once` blocks at a time.
  template <class F>
  void for_each_strip(std::int64_t block_begin, std::int64_t block_end, std::int64_t at_once, F&& f) const {
    for (std::int64_t b = block_begin; b < block_end;) {
      const std::int64_t first = b % p_.blocks();
      const std::int64_t count = std::min({block_end - b, p_.blocks() - first, at_once});
      f(strip{p_.group + b / p_.blocks(),
              {first * block, std::min(p_.rows, (first + count) * block)},
              (b - block_begin) * block});
      b += count;
    }
  }

  /// Calls f(i, operand, line, last, steps, done) for some lines of a side in order, a few blocks of lines at a time,
  /// and each part of the depth: lines [line, last) and `steps` of the operand are those from i on behind `done` steps.
  template <class F>
  void for_each_block(const gemm_side<T>& side, std::int64_t group, range lines, F&& f) const {
    const std::int64_t few_lines = side.first.depth_major ? chunk : block;
    const std::int64_t at_once = side.source ? staged_lines<T>(steps_.depth) / block * block : lines.size();
    for (std::int64_t base = lines.begin; base < lines.end; base += at_once) {
      const std::int64_t last = std::min(lines.end, base + at_once);
      for_each_part(steps_, p_.group_depth, [&](std::int64_t groups, gemm_steps steps, std::int64_t done) {
        if (side.source) side.make(group + groups, base, last - base, steps.start, steps.depth, staging<T>());
        for (std::int64_t i = base; i < last; i += few_lines) {
          const std::int64_t until = std::min(last, i + few_lines);
          if (side.source)
            f(i, side.made(staging<T>(), last - base, steps.depth), i - base, until - base, gemm_steps{0, steps.depth},
              done);
          else f(i, side.of(group + groups), i, until, steps, done);
        }
      });
    }
  }

  /// Packs lines [line, last) and some steps, block behind block; a block is two rows of tiles along the depth. Memory
  /// is read row by row. Calls special(first line, lines, steps) for tiles with a special_float.
  template <class Special>
  void pack_blocks(const gemm_operand<T>& from, bool left, std::int64_t line, std::int64_t last, gemm_steps steps,
                   bool far, bfloat16* to, Special&& special) const {
    const std::int64_t end = line + ceil_div(last - line, block) * block;
    const auto pack = [&](std::int64_t i, std::int64_t p) {
      const std::int64_t lines = std::clamp<std::int64_t>(last - i, 0, tile_lines);
      const gemm_steps tile{steps.start + p, std::min(tile_depth, steps.depth - p)};
      if (pack_tile(from, left, i, lines, tile.start, tile.depth, to + ((i - line) * padded_ + p * tile_lines) * parts))
        special(i, lines, tile);
    };
    if (!from.depth_major) {
      for (std::int64_t i = line; i < end; i += tile_lines)
        for (std::int64_t p = 0; p < steps.depth; p += tile_depth) pack(i, p);
      return;
    }
    for (std::int64_t p = 0; p < steps.depth; p += tile_depth)
      for (std::int64_t i = line; i < end; i += tile_lines) {
        if (far) ask_for_steps(from, i, steps.start + p + tile_depth, steps.depth - p - tile_depth);
        pack(i, p);
      }
  }

  /// `asked_for` if the memory is on its way to the second cache.
  template <std::int64_t Most>
  void pack_side(const gemm_side<T>& side, bool left, std::int64_t group, range lines, bfloat16* to,
                 special_lines<Most>& special, std::int64_t first_special, bool asked_for) const {
    const bool far =
        !asked_for && side.first.depth_major && !side.source && side.first.lines * p_.depth > far_elements<T>;
    for_each_block(side, group, lines,
                   [&](std::int64_t i, const gemm_operand<T>& from, std::int64_t line, std::int64_t last,
                       gemm_steps steps, std::int64_t done) {
                     const std::int64_t before = i - lines.begin;
                     pack_blocks(from, left, line, last, steps, far,
                                 to + (before * padded_ + done * tile_lines) * parts,
                                 [&](std::int64_t first, std::int64_t count, gemm_steps tile) {
                                   if constexpr (in_parts)
                                     special.mark(from, first, count, tile, first_special + before + first - line);
                                 });
                   });
  }
  void pack_a(const strip& rows) {
    pack_side(p_.a, true, rows.group, rows.lines, packed_a_ + rows.packed * padded_ * parts, special_a_, rows.packed,
              false);
  }
  void pack_b(std::int64_t first, std::int64_t end, bool asked_for) {
    special_b_.forget();
    pack_side(p_.b, false, p_.group, {first, end}, packed_b_, special_b_, 0, asked_for && in_parts);
  }

  gemm_steps steps_of(std::int64_t d) const { return read_of_block(p_.depth, p_.read, d, most_depth); }

  /// Asks for `lines` of a side over some steps, which are packed next, while rows and columns are multiplied.
  void ask_for_next(const gemm_side<T>& side, range lines, std::int64_t group, gemm_steps steps, const strip& rows,
                    range columns) {
    gemm_rows next;
    if (lines.size() > 0 && steps.depth > 0 && !side.source && p_.depth == p_.group_depth)
      next = rows_of(side.of(group), lines.begin, lines.size(), steps);
    meanwhile_.spread(next,
                      ceil_div(rows.lines.size(), block) * ceil_div(columns.size(), tile_lines) * padded_ / tile_depth);
  }

  /// Whether there is something in C that these steps are added to.
  bool adds() const { return p_.accumulate || steps_.start > 0; }

  /// Packed rows times packed columns.
  void multiply(const strip& rows, range columns) {
    const bool special = special_a_.any || special_b_.any;
    for (std::int64_t i = rows.lines.begin; i < rows.lines.end; i += block) {
      const std::int64_t high = std::min(block, rows.lines.end - i);
      const std::int64_t packed = rows.packed + i - rows.lines.begin;
      for (std::int64_t j = columns.begin; j < columns.end; j += block) {
        float* const to = at(rows.group, i, j);
        const std::int64_t packed_column = j - columns.begin;
        if (far_) ask_for_block(to + (adds() ? block : 0), high);
        multiply_block(packed_a_ + packed * padded_ * parts, packed_b_ + packed_column * padded_ * parts, high,
                       std::min(block, columns.end - j), to, special ? special_a_.at + packed : nullptr,
                       special ? special_b_.at + packed_column : nullptr);
      }
      if (!special) finish(rows.group, {i, i + high}, columns);
    }
    if constexpr (in_parts)
      if (special) {
        multiply_special_lines(rows, columns);
        finish(rows.group, rows.lines, columns);
      }
  }

  /// Where an element of C lies.
  float* at(std::int64_t group, std::int64_t row, std::int64_t column) const {
    return p_.c + (group - p_.group) * p_.c_stride + row * p_.c_step + column;
  }

  void finish(std::int64_t group, range rows, range columns) const {
    if (p_.finish && steps_.end() == p_.read)
      p_.finish.run(p_.finish.context, p_.finished_group + group - p_.group, rows.begin, rows.size(), columns.begin,
                    columns.size());
  }

  /// Asks for the memory of a block of C before it is computed, or of the next one where blocks are read first.
  void ask_for_block(const float* at, std::int64_t rows) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < block; j += tile_lines) __builtin_prefetch(at + i * p_.c_step + j, 1, 3);
  }

  /// At least the first `rows` rows and `columns` columns of a block.
  void multiply_whole_block(const bfloat16* left, const bfloat16* right, std::int64_t rows,
                            [[maybe_unused]] std::int64_t columns, float* to, std::int64_t step) {
#if defined(TESSERA_HAS_AMX)
    if constexpr (in_parts) {
      const auto multiply = rows <= tile_lines ? p_.exchanged ? multiply_tiles_of_parts<1, true, asking_meanwhile>
                                                              : multiply_tiles_of_parts<1, false, asking_meanwhile>
                            : p_.exchanged ? multiply_tiles_of_parts<2, true, asking_meanwhile>
                                               : multiply_tiles_of_parts<2, false, asking_meanwhile>;
      for (std::int64_t j = 0; j < columns; j += tile_lines, right += padded_ * tile_lines * parts, to += tile_lines)
        multiply(padded_, left, right, to, step, adds(), meanwhile_);
      return;
    } else if (has_matrix_registers()) {
      return multiply_tiles(padded_, left, right, to, step, adds());
    }
#endif
    if constexpr (!in_parts) multiply_tiles_in_vectors(padded_, left, right, to, step, adds(), rows);
  }

  /// A block of C, by way of a whole one where it is smaller, or where rows or columns are left as they are (unless
  /// `special_rows` is null).
  void multiply_block(const bfloat16* left, const bfloat16* right, std::int64_t rows, std::int64_t columns, float* to,
                      const bool* special_rows, const bool* special_columns) {
    const bool whole_tiles = in_parts && rows % tile_lines == 0 && columns % tile_lines == 0;
    if (special_rows == nullptr && (whole_tiles || (rows == block && columns == block)))
      return multiply_whole_block(left, right, rows, columns, to, p_.c_step);
    alignas(64) float whole[block * block]{};
    if (adds())
      for (std::int64_t i = 0; i < rows; ++i) std::copy_n(to + i * p_.c_step, columns, whole + i * block);
    multiply_whole_block(left, right, rows, columns, whole, block);
    for (std::int64_t i = 0; i < rows; ++i) {
      if (special_rows == nullptr) std::copy_n(whole + i * block, columns, to + i * p_.c_step);
      else if (!special_rows[i])
        for (std::int64_t j = 0; j < columns; ++j)
          if (!special_columns[j]) to[i * p_.c_step + j] = whole[i * block + j];
    }
  }

  /// What multiply_block left out.
  void multiply_special_lines(const strip& rows, range columns) const {
    const range packed{rows.packed, rows.packed + rows.lines.size()};
    const auto rows_of_run = [&](std::int64_t i, std::int64_t end) {
      return range{rows.lines.begin + i - rows.packed, rows.lines.begin + end - rows.packed};
    };
    special_a_.for_each_run(packed.begin, packed.end, true, [&](std::int64_t i, std::int64_t end) {
      multiply_in_vectors(rows.group, rows_of_run(i, end), columns);
    });
    special_b_.for_each_run(0, columns.size(), true, [&](std::int64_t j, std::int64_t last) {
      special_a_.for_each_run(packed.begin, packed.end, false, [&](std::int64_t i, std::int64_t end) {
        multiply_in_vectors(rows.group, rows_of_run(i, end), {columns.begin + j, columns.begin + last});
      });
    });
  }

  /// A rectangle of C over this block of the depth, by fused multiply-adds.
  void multiply_in_vectors(std::int64_t of_group, range rows, range columns) const {
    const second_workspace while_packed_operands_are_in_use;
    for_each_part(steps_, p_.group_depth, [&](std::int64_t groups, gemm_steps steps, std::int64_t done) {
      gemm_problem<T> q;
      q.m = rows.size(), q.n = columns.size(), q.k = steps.depth;
      q.a_transposed = p_.a.first.depth_major, q.b_transposed = !p_.b.first.depth_major;
      const part_of_side<T> left(p_.a, of_group + groups, rows.begin, steps.start);
      const part_of_side<T> right(p_.b, of_group + groups, columns.begin, steps.start);
      q.a = left.data, q.lda = p_.a.first.leading, q.a_source = left.source();
      q.b = right.data, q.ldb = p_.b.first.leading, q.b_source = right.source();
      q.c = at(of_group, rows.begin, columns.begin), q.ldc = p_.c_step;
      q.accumulate = adds() || done > 0;
      const gemm_run<T> run(q);
      run(run.region(0));
    });
  }

  tiled_product<T> p_;
  bfloat16* packed_a_;
  bfloat16* packed_b_;
  special_lines<in_parts ? few_blocks * block : 1> special_a_;
  special_lines<in_parts ? most_columns : 1> special_b_;
  gemm_steps steps_;         ///< of the depth that are packed
  std::int64_t padded_ = 0;  ///< steps, rounded up to whole tiles
  bool far_ = false;         ///< whether C does not stay in the second cache
  asking_meanwhile meanwhile_;
};

}  // namespace tessera::kernels::detail

#endif
