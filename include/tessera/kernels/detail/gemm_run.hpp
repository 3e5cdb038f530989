// SPDX-License-Identifier: Apache-2.0
// A matrix multiplication on one thread: blocks for the caches, packed operands, panels of tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <tessera/kernels/detail/gemm_pack.hpp>
#include <tessera/kernels/detail/gemm_tile.hpp>
#include <tessera/kernels/detail/workspace.hpp>
#include <tessera/kernels/gemm_problem.hpp>

namespace tessera::kernels::detail {

template <class T>
inline constexpr std::int64_t packed_a_size = (std::int64_t{1} << 18) / static_cast<std::int64_t>(sizeof(compute_t<T>));

template <class T>
inline constexpr std::int64_t packed_b_size = (std::int64_t{3} << 19) / static_cast<std::int64_t>(sizeof(compute_t<T>));

/// Elements of C in the second cache when work on finished ones begins.
inline constexpr std::int64_t finish_at_once = std::int64_t{1} << 16;

/// How rows and columns of each batch entry are cut for threads.
struct gemm_cut {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

/// A rectangle of tiles: row panels x column panels of one batch entry.
struct gemm_region {
  std::int64_t batch, row_begin, row_end, column_begin, column_end;
};

/// A problem with its groups resolved into three axes (at most one is longer than 1): entries of a batch, groups
/// stacked along the rows because they share B, groups stacked along the depth because they share C. Rows are cut into
/// panels of at most tile_rows, columns into panels of at most tile_columns; a panel of rows never crosses a group.
template <class T>
class gemm_run {
 public:
  using packed = compute_t<T>;

  explicit gemm_run(const gemm_problem<T>& problem, std::int64_t threads = 1)
      : p_(problem),
        a_(left_side(problem)),
        b_(right_side(problem)),
        depth_groups_(problem.c_stride == 0 ? problem.groups : 1),
        row_groups_(problem.b_stride == 0 && problem.c_stride != 0 ? problem.groups : 1),
        batches_(problem.groups / (depth_groups_ * row_groups_)),
        cut_(best_cut(ceil_div(threads, std::min(batches_, threads)))),
        panels_(in_equal_parts(ceil_div(problem.m, tile_rows<T>), problem.m, row_groups_ == 1 ? cut_.rows : 1)),
        column_panels_(in_equal_parts(ceil_div(problem.n, tile_columns<T>), vectors(), cut_.columns)),
        depth_(problem.k * depth_groups_),
        read_(std::min(problem.read, depth_)) {}

  /// Regions, about equally large, that threads can work on at once.
  std::int64_t regions() const { return batches_ * cut_.rows * cut_.columns; }
  gemm_region region(std::int64_t i) const {
    const std::int64_t row = i / cut_.columns % cut_.rows;
    const std::int64_t column = i % cut_.columns;
    return {i / (cut_.rows * cut_.columns), part(panels_ * row_groups_, cut_.rows, row),
            part(panels_ * row_groups_, cut_.rows, row + 1), part(column_panels_, cut_.columns, column),
            part(column_panels_, cut_.columns, column + 1)};
  }

  /// Computes a region of C on this thread. Every element is the sum over depth blocks, in order, of sums over depth
  /// steps, in order: neither the region nor the panel it falls into changes its bits.
  void operator()(const gemm_region& region) const {
    if (region.row_begin == region.row_end) return;
    auto* const packed_a = reinterpret_cast<packed*>(workspace());
    packed* const packed_b = packed_a + packed_a_size<T>;
    const std::int64_t longest = depth_block(depth_, 0).depth;
    const std::int64_t columns = (packed_b_size<T> - width<T>) / (longest * tile_columns<T>);
    const std::int64_t column_blocks = ceil_div(region.column_end - region.column_begin, columns);
    for (std::int64_t j = 0; j < column_blocks; ++j)
      for (std::int64_t d = 0; steps_of(d).depth > 0; ++d) {
        gemm_region strip = region;
        strip.column_begin += part(region.column_end - region.column_begin, column_blocks, j);
        strip.column_end = region.column_begin + part(region.column_end - region.column_begin, column_blocks, j + 1);
        multiply_strip(strip, steps_of(d), steps_of(d + 1), packed_a, packed_b);
      }
  }

 private:
  /// Elements from one row of a packed A to the next where it lies row by row: no two share a place in a cache.
  static constexpr std::int64_t packed_row = gemm_depth + 64 / static_cast<std::int64_t>(sizeof(packed));

  std::int64_t vectors() const { return ceil_div(p_.n, width<T>); }

  /// Panels for `lines` lines, at least `panels` and at most one a line: a multiple of `parts` where there are so many.
  static std::int64_t in_equal_parts(std::int64_t panels, std::int64_t lines, std::int64_t parts) {
    return std::min(ceil_div(panels, parts) * parts, lines);
  }

  /// What it costs to read or pack an element of A and of B, in quarters of a vector operation.
  std::int64_t reading_a() const { return a_.source ? 8 : 1; }
  std::int64_t reading_b() const {
    if (b_.source) return 8;
    return p_.b_transposed ? 4 : 1;
  }

  /// The cut into `parts` that keeps the largest part cheapest, multiplications and what it reads; of equal ones that
  /// into the most parts of rows, which threads then have to themselves.
  gemm_cut best_cut(std::int64_t parts) const {
    gemm_cut best;
    std::int64_t least = INT64_MAX;
    for (std::int64_t of_rows = parts; of_rows >= 1; --of_rows) {
      if (parts % of_rows != 0) continue;
      const std::int64_t rows = ceil_div(p_.m * row_groups_, of_rows);
      const std::int64_t columns = ceil_div(vectors(), parts / of_rows);
      const std::int64_t cost = 4 * rows * columns + reading_a() * rows + reading_b() * columns * width<T>;
      if (cost < least) {
        least = cost;
        best = {of_rows, parts / of_rows};
      }
    }
    return best;
  }

  /// A tile can read rows of A where they lie, but not rows of its transpose.
  bool a_in_place() const { return std::is_same_v<T, packed> && !a_.source && !p_.a_transposed && depth_groups_ == 1; }

  /// Elements from one packed panel of A to the next.
  std::int64_t packed_panel_of_a(std::int64_t depth) const {
    return tile_rows<T> * (p_.a_transposed ? depth : packed_row);
  }

  gemm_steps steps_of(std::int64_t d) const { return read_of_block(depth_, read_, d); }

  /// Panels are about equally high, the first of equal parts of them no lower than the others.
  std::int64_t panel_row(std::int64_t panel) const { return ceil_div(p_.m * panel, panels_); }

  /// A panel that is to be packed: its lines within a group, and where they go.
  struct destination {
    std::int64_t line, lines;
    packed* to;
    std::int64_t step;
    bool by_lines;
  };

  /// Packs panels [first, last), neighbours in one group, of the steps [start, start + depth), by way of the staging
  /// memory where they have to be made.
  template <class Panel>
  void pack_panels(const gemm_side<T>& side, std::int64_t group, Panel panel, std::int64_t first, std::int64_t last,
                   std::int64_t start, std::int64_t depth) const {
    const std::int64_t line = panel(first).line;
    const std::int64_t lines = panel(last - 1).line + panel(last - 1).lines - line;
    T* const staged = side.source ? staging<T>() : nullptr;
    if (side.source)
      for_each_part({start, depth}, p_.k, [&](std::int64_t g, gemm_steps within, std::int64_t done) {
        side.make(group + g, line, lines, within.start, within.depth, staged + done * lines);
      });
    // A few steps of all panels at a time where a step is a row: that is one piece of memory.
    const std::int64_t at_once = side.first.depth_major && !side.source ? 16 : depth;
    for_each_part({start, depth}, p_.k, [&](std::int64_t g, gemm_steps within, std::int64_t done) {
      for (std::int64_t s = 0; s < within.depth; s += at_once)
        for (std::int64_t q = first; q < last; ++q) {
          const destination d = panel(q);
          packed* const to = d.to + (done + s) * (d.by_lines ? 1 : d.step);
          const std::int64_t count = std::min(at_once, within.depth - s);
          if (side.source)
            pack(side.made(staged + done * lines, lines, within.depth), d.line - line, d.lines, 0, count, to, d.step,
                 d.by_lines);
          else pack(side.of(group + g), d.line, d.lines, within.start + s, count, to, d.step, d.by_lines);
        }
    });
  }

  /// Panels of rows of a block: their part of A stays in the second cache, and their tiles of C lie in few pages. Where
  /// A is made, as many as there is room for, so that rows of its transpose are long. Where it is read in place, again
  /// and again for many columns, its rows lie in no more pages than a processor keeps at hand.
  std::int64_t panels_at_once(const gemm_region& strip) const {
    constexpr std::int64_t room = packed_a_size<T> / (tile_rows<T> * packed_row);
    constexpr std::int64_t most = std::min<std::int64_t>(room, 48);
    if (a_.source) return room;
    if (!a_in_place() || columns_of(strip) < 512) return most;
    constexpr std::int64_t page = 4096, pages = 96;  // Golden Cove's; Ice Lake and Zen 3 have 64
    const std::int64_t rows_of_page = std::max<std::int64_t>(page / (p_.lda * static_cast<std::int64_t>(sizeof(T))), 1);
    return std::min(most, ceil_div(pages * rows_of_page, tile_rows<T>));
  }

  gemm_region block_of_rows(const gemm_region& strip, std::int64_t i) const {
    const std::int64_t panels = strip.row_end - strip.row_begin;
    const std::int64_t blocks = ceil_div(panels, panels_at_once(strip));
    gemm_region block = strip;
    block.row_begin = strip.row_begin + part(panels, blocks, i);
    block.row_end = strip.row_begin + part(panels, blocks, i + 1);
    return block;
  }

  /// For so few panels of rows B is not worth packing.
  static constexpr std::int64_t too_few_to_pack = 2;

  /// All rows of the strip times its columns of B, over `steps`; `next` are the steps after them. Panels of B that
  /// are packed are so just before their first use, several at a time where they have to be made.
  void multiply_strip(const gemm_region& strip, gemm_steps steps, gemm_steps next, packed* packed_a,
                      packed* packed_b) const {
    const std::int64_t panels = strip.row_end - strip.row_begin;
    const std::int64_t row_blocks = ceil_div(panels, panels_at_once(strip));
    const std::int64_t packed_at_once = b_.source ? staged_lines<T>(steps.depth) / tile_columns<T> : 1;
    const bool keep = row_blocks > 1 || b_.source;
    for (std::int64_t i = 0; i < row_blocks; ++i) {
      const gemm_region block = block_of_rows(strip, i);
      if (!a_in_place()) pack_rows_of_a(block, steps.start, steps.depth, packed_a);
      std::int64_t finished = strip.column_begin;
      for (std::int64_t q = strip.column_begin; q < strip.column_end; ++q) {
        packed* const panel = packed_b + (keep ? q - strip.column_begin : 0) * steps.depth * tile_columns<T>;
        const b_state state = i > 0 ? b_state::packed : state_of_b(block, q, panels <= too_few_to_pack);
        if (i == 0 && state == b_state::packed && (q - strip.column_begin) % packed_at_once == 0)
          pack_panels_of_b(strip.batch, q, std::min(q + packed_at_once, strip.column_end), steps.start, steps.depth,
                           panel);
        gemm_upcoming upcoming;  // a single tile that waits for B has no time to ask for what the next one reads
        if (panels > 1 || state == b_state::packed)
          upcoming = after_panel(strip, i, i + 1 == row_blocks, q, steps, next);
        multiply_panel(block, q, steps, packed_a, panel, state, upcoming);
        const bool end = q + 1 == strip.column_end;
        if (p_.finish && steps.end() == read_ && (end || worth_finishing(block, q + 1 - finished))) {
          finish(block, finished, q + 1);
          finished = q + 1;
        }
      }
    }
  }

  /// What is read after panel q of a strip's i-th block of rows, or during it: the block itself at the very first, the
  /// next panel of B, and a share of the next block of A, and of B over the next steps, whose turn comes after the last
  /// panel.
  gemm_upcoming after_panel(const gemm_region& strip, std::int64_t i, bool last, std::int64_t q, gemm_steps steps,
                            gemm_steps next) const {
    gemm_upcoming upcoming;
    const bool begin = q == strip.column_begin;
    const bool end = q + 1 == strip.column_end;
    if (steps.start == 0 && i == 0 && begin && a_in_place()) upcoming.add(rows_of_a(block_of_rows(strip, 0), steps));
    if (i == 0 && !end && (steps.start == 0 || piece_of_b(strip, steps).rows == 0))
      upcoming.add(rows_of_b(strip.batch, q + 1, q + 2, steps));
    const auto share = [&](const gemm_rows& all) {
      const std::int64_t panels = strip.column_end - strip.column_begin;
      const std::int64_t first = part(all.rows, panels, q - strip.column_begin);
      const std::int64_t past = part(all.rows, panels, q - strip.column_begin + 1);
      return gemm_rows{all.at + first * all.leading, past - first, all.bytes, all.leading};
    };
    const gemm_rows piece = piece_of_b(strip, next);
    if (last && piece.rows > 0) upcoming.add(share(piece));
    else if (last && end) upcoming.add(rows_of_b(strip.batch, strip.column_begin, strip.column_begin + 1, next));
    upcoming.add(
        share(last ? rows_of_a(block_of_rows(strip, 0), next) : rows_of_a(block_of_rows(strip, i + 1), steps)));
    return upcoming;
  }

  /// How the first tile of a panel reads B. Where B is whole vectors in memory, and steps are rows, all tiles read it
  /// from there if they are `few`, else the first one packs it for the others if it is as high as a tile can be.
  b_state state_of_b(const gemm_region& block, std::int64_t q, bool few) const {
    const bool readable = std::is_same_v<T, packed> && !b_.source && !p_.b_transposed && depth_groups_ == 1 &&
                          panel_columns(q) % width<T> == 0;
    if (!readable) return b_state::packed;
    if (few) return b_state::in_place;
    return rows_of_panel(block.row_begin % panels_) == tile_rows<T> ? b_state::fresh : b_state::packed;
  }

  /// What the panels [first, last) of B are packed from.
  gemm_rows rows_of_b(std::int64_t group, std::int64_t first, std::int64_t last, gemm_steps steps) const {
    if (b_.source || depth_groups_ > 1 || steps.depth == 0) return {};
    return rows_of(b_.of(group), panel_column(first), panel_column(last) - panel_column(first), steps);
  }

  static constexpr std::int64_t most_of_b_ahead = std::int64_t{1} << 19;  ///< bytes

  /// What a strip's panels of B are packed from, in rows of a few lines, if it is one piece of memory for which the
  /// second cache has room beside what is in use: from front to back that comes faster than panel by panel.
  gemm_rows piece_of_b(const gemm_region& strip, gemm_steps steps) const {
    constexpr std::int64_t at_once = gemm_ahead::lines * gemm_ahead::line;
    const gemm_rows all = rows_of_b(strip.batch, strip.column_begin, strip.column_end, steps);
    if (all.bytes != all.leading || all.rows * all.bytes > most_of_b_ahead) return {};
    return {all.at, ceil_div(all.rows * all.bytes, at_once), at_once, at_once};
  }

  /// What the first group's rows of a block are packed from.
  gemm_rows rows_of_a(const gemm_region& block, gemm_steps steps) const {
    if (a_.source || depth_groups_ > 1 || steps.depth == 0) return {};
    const std::int64_t first = block.row_begin % panels_;
    const std::int64_t last = std::min(first + block.row_end - block.row_begin, panels_);
    return rows_of(a_.of(block.batch + block.row_begin / panels_), panel_row(first), panel_row(last) - panel_row(first),
                   steps);
  }

  static bool worth_finishing(const gemm_region& block, std::int64_t column_panels) {
    return (block.row_end - block.row_begin) * tile_rows<T> * column_panels * tile_columns<T> >= finish_at_once;
  }

  /// Tells that the block's columns in the panels [first, last) have their final values.
  void finish(const gemm_region& block, std::int64_t first, std::int64_t last) const {
    const std::int64_t column = panel_column(first);
    const std::int64_t columns = panel_column(last) - column;
    for_each_group(block, [&](std::int64_t group, std::int64_t first_panel, std::int64_t last_panel) {
      const std::int64_t row = panel_row(first_panel);
      p_.finish.run(p_.finish.context, group, row, panel_row(last_panel) - row, column, columns);
    });
  }

  /// Calls f(group, first, last) for the panels of rows of a block, by group; [first, last) are counted in the group.
  template <class F>
  void for_each_group(const gemm_region& block, F&& f) const {
    for (std::int64_t r = block.row_begin; r < block.row_end;) {
      const std::int64_t first = r % panels_;
      const std::int64_t count = std::min(block.row_end - r, panels_ - first);
      f(block.batch + r / panels_, first, first + count);
      r += count;
    }
  }

  std::int64_t rows_of_panel(std::int64_t r) const { return panel_row(r + 1) - panel_row(r); }

  /// Panels of columns are whole vectors, about equally many.
  std::int64_t panel_column(std::int64_t q) const {
    return std::min(ceil_div(vectors() * q, column_panels_) * width<T>, p_.n);
  }
  std::int64_t panel_columns(std::int64_t q) const { return panel_column(q + 1) - panel_column(q); }
  std::int64_t columns_of(const gemm_region& strip) const {
    return panel_column(strip.column_end) - panel_column(strip.column_begin);
  }
  static std::int64_t padded(std::int64_t columns) { return ceil_div(columns, width<T>) * width<T>; }

  void pack_panels_of_b(std::int64_t group, std::int64_t first, std::int64_t last, std::int64_t start,
                        std::int64_t depth, packed* to) const {
    const auto panel = [&](std::int64_t q) {
      const std::int64_t columns = panel_columns(q);
      return destination{panel_column(q), columns, to + (q - first) * depth * tile_columns<T>, padded(columns), false};
    };
    pack_panels(b_, group, panel, first, last, start, depth);
  }

  void pack_rows_of_a(const gemm_region& block, std::int64_t start, std::int64_t depth, packed* packed_a) const {
    const std::int64_t at_once = a_.source ? staged_lines<T>(depth) / tile_rows<T> : block.row_end - block.row_begin;
    packed* to = packed_a;
    for_each_group(block, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
      const auto panel = [&](std::int64_t r) {
        const std::int64_t rows = rows_of_panel(r);
        return destination{panel_row(r), rows, to + (r - first) * packed_panel_of_a(depth),
                           p_.a_transposed ? rows : packed_row, !p_.a_transposed};
      };
      for (std::int64_t r = first; r < last; r += at_once)
        pack_panels(a_, group, panel, r, std::min(r + at_once, last), start, depth);
      to += (last - first) * packed_panel_of_a(depth);
    });
  }

  void multiply_panel(const gemm_region& block, std::int64_t q, gemm_steps steps, const packed* packed_a,
                      packed* panel_of_b, b_state state, gemm_upcoming& upcoming) const {
    const bool accumulate = p_.accumulate || steps.start > 0;
    const std::int64_t columns = panel_columns(q);
    const a_layout layout = p_.a_transposed ? a_layout::steps : a_layout::rows;
    gemm_tile_operands<packed> from{packed_a, a_in_place() ? p_.lda : packed_row, nullptr, p_.ldb, panel_of_b};
    if constexpr (std::is_same_v<T, packed>)
      if (state != b_state::packed) from.b = b_.of(block.batch).at(panel_column(q), steps.start);
    for_each_group(block, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
      packed* c = p_.c + group * p_.c_stride + panel_row(first) * p_.ldc + panel_column(q);
      if constexpr (std::is_same_v<T, packed>)
        if (a_in_place()) from.a = a_.of(group).at(panel_row(first), steps.start);
      for (std::int64_t r = first; r < last; ++r) {
        const std::int64_t rows = rows_of_panel(r);
        const bool fresh = state == b_state::fresh;  // a tile that waits for B itself asks for nothing else
        gemm_tile_any(rows, columns, steps.depth, layout, state, from, c, p_.ldc, accumulate,
                      fresh ? gemm_ahead{} : upcoming.take(steps.depth));
        if (fresh) state = b_state::packed;
        from.a += a_in_place() ? rows * p_.lda : packed_panel_of_a(steps.depth);
        c += rows * p_.ldc;
      }
    });
  }

  gemm_problem<T> p_;
  gemm_side<T> a_, b_;
  std::int64_t depth_groups_, row_groups_, batches_;
  gemm_cut cut_;
  std::int64_t panels_, column_panels_, depth_, read_;
};

}  // namespace tessera::kernels::detail
