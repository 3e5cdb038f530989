// SPDX-License-Identifier: Apache-2.0
// What lowering yields and the executor walks: a fixed list of steps over buffers at fixed places.
#pragma once

#include <tessera/core/aval.hpp>
#include <tessera/graph/graph.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tessera::graph {

/// Where a buffer lies. A window is a part of another buffer, which may move from trip to trip of a loop. In host
/// memory lies what only to_host writes and only from_host reads. Of a buffer in `rows` only the rows exist that a
/// block of a row group is about, in memory of the thread that runs the block. What is made in `blocks` by the step
/// that reads it has no memory.
enum class space : std::uint8_t { temporary, argument, result, constant, window, host, rows, blocks };

/// Memory for one block of a value; `place` is an offset in a device's arena in bytes, or in what the device has of the
/// host's memory, or the number of an argument, result or constant; of a window, the buffer it is part of; of rows, the
/// bytes a row of the block that lie before it.
struct buffer {
  space where = space::temporary;
  std::int64_t place = 0;
  std::int64_t bytes = 0;
  dtype type = dtype::f32;
  axis_set varying = 0;
  axis_list summed = 0;     ///< axes over which devices of one process have added up their blocks as they made them
  int follows = -1;         ///< the buffer that ends where this one has to start, or -1
  std::int64_t offset = 0;  ///< of a window: where it starts in the other buffer, in bytes;
  int loop = -1;            ///< the number of the loop it moves in, or -1 if it stays,
  std::int64_t stride = 0;  ///< and by how many bytes a trip

  constexpr void fields(auto&& field) {
    field(where), field(place), field(bytes), field(type), field(varying), field(summed);
    field(follows), field(offset), field(loop), field(stride);
  }
};

/// How a step reads or writes a buffer (or counts, if `buffer` is -1): the first element, element strides along the
/// step's dimensions, and the stride from block to block along `slice_axes` where each device reads a block of its own.
struct access {
  int buffer = -1;
  std::int64_t strides[max_rank]{};
  std::int64_t offset = 0;
  axis_list slice_axes = 0;
  std::int64_t slice_stride = 0;

  constexpr void fields(auto&& field) {
    field(buffer), field(offset), field(slice_axes), field(slice_stride);
    field.leading(strides);
  }
};

/// Places in `strides` of what a product reads or writes scattered: from row to row, from matrix to matrix, from the
/// first matrix of a line to that of the next, and how many a line has. All are 0 where matrices lie one behind the
/// other, row by row.
enum matrix_strides : std::uint8_t { row_distance, matrix_distance, line_distance, matrices_in_line };

constexpr bool lies_scattered(const access& a) { return a.strides[row_distance] != 0; }

/// Elements before the first one of matrix number `group` that lies scattered.
constexpr std::int64_t first_of_matrix(const access& a, std::int64_t group) {
  const std::int64_t in_line = a.strides[matrices_in_line];
  return a.offset + group / in_line * a.strides[line_distance] + group % in_line * a.strides[matrix_distance];
}

/// How a fused instruction list gets at a source along the innermost dimension: one element for all, neighbours,
/// elements at a distance, or no memory but the position itself.
enum class source_mode : std::uint8_t { repeated, contiguous, strided, count_repeated, count };

// name, how many of its sizes tell what it does (-1: as many as its rank)
#define TESSERA_STEPS(X) \
  X(fused, -1)           \
  X(dot, 4)              \
  X(reduce, 4)           \
  X(softmax, 2)          \
  X(log_softmax, 2)      \
  X(softmax_grad, 2)     \
  X(log_softmax_grad, 2) \
  X(update_slice, -1)    \
  X(overlap_add, 4)      \
  X(dynamic_slice, 4)    \
  X(dynamic_update, 4)   \
  X(gather, 5)           \
  X(scatter, 5)          \
  X(cumulative, 5)       \
  X(recurrence, 5)       \
  X(argsort, 5)          \
  X(custom, 0)           \
  X(check_range, 2)      \
  X(copy_out, 0)         \
  X(to_host, 0)          \
  X(from_host, 0)        \
  X(scan, 1)             \
  X(while_loop, 0)       \
  X(branch, 0)           \
  X(all_reduce, 0)       \
  X(all_gather, 3)       \
  X(reduce_scatter, 3)   \
  X(all_to_all, 5)       \
  X(collective_permute, 0)

enum class step_kind : std::uint8_t {
#define TESSERA_STEP_NAME(name, shown) name,
  TESSERA_STEPS(TESSERA_STEP_NAME)
#undef TESSERA_STEP_NAME
};

struct step_row {
  std::string_view name;
  int shown;
};

inline constexpr step_row step_table[] = {
#define TESSERA_STEP_ROW(name, shown) {#name, shown},
    TESSERA_STEPS(TESSERA_STEP_ROW)
#undef TESSERA_STEP_ROW
};

inline constexpr std::size_t step_kinds = std::size(step_table);

/// The row of the table for `kind`.
constexpr const step_row& about(step_kind kind) { return step_table[static_cast<int>(kind)]; }

constexpr bool is_collective(step_kind kind) { return kind >= step_kind::all_reduce; }

/// Whether the step takes parts of arrays or puts arrays together.
constexpr bool is_movement(step_kind kind) { return kind >= step_kind::update_slice && kind <= step_kind::scatter; }

/// Whether the step copies an array as it is.
constexpr bool is_copy(step_kind kind) { return kind >= step_kind::copy_out && kind <= step_kind::from_host; }

/// Whether the step only decides how often the steps behind it run.
constexpr bool is_control(step_kind kind) { return kind >= step_kind::scan && kind <= step_kind::branch; }

/// What a fused step does for a product, with which it runs block by block: it makes an operand while that is packed,
/// or goes on with elements of the result while they lie in the cache. Makers stand just before the product, the others
/// just behind it.
enum class product_part : std::uint8_t { none, makes_lhs, makes_rhs, finishes };

/// Steps that finish one product at most.
inline constexpr int max_finishing = 2;

/// One kernel call for every distinct shard, or one collective. `accesses` [first, first + sources) are read, the next
/// `results` are written. `sizes`, by kind: fused: extents; dot: m, n, k, batch, whether lhs and rhs lie transposed,
/// whether they have changed sides;
/// reduce: kind, outer, n, inner; rows: rows, columns; update_slice: extents of the piece; overlap_add:
/// see lower_movement.hpp;
/// dynamic_slice and dynamic_update: outer, extent, part, inner; gather and scatter: batch, outer, n,
/// m, inner, how, extent of the whole dimension, whose block `axes` cut out; check_range: bound, elements,
/// the axes that cut each dimension; all_reduce: kind; all_gather and reduce_scatter: outer, block, inner, kind;
/// all_to_all: of its operand, outer, first, middle, second, inner, and whether the first one is split (then the second
/// one is joined); collective_permute: the axes by which a device finds the place, counted along `axes`, of the one
/// that sends to it, or 0 and the words of a permutation; control: see control_sizes.
struct step {
  step_kind kind = step_kind::fused;
  int code = -1;                           ///< of a fused step: which instruction list,
  product_part part = product_part::none;  ///< and its part in a product
  axis_set varying = 0;
  axis_list axes = 0;  ///< of a collective; of a dot: axes whose devices add into one block where they share a process
  int first = 0;
  int sources = 0;
  int results = 0;
  int rank = 0;
  std::int64_t sizes[max_rank]{};
  std::int64_t flops = 0;            ///< per device
  std::int64_t transcendentals = 0;  ///< per device
  std::int64_t bytes = 0;            ///< read and written, per device; of a collective: its operands
  bool sums_rows = false;            ///< of a dot or reduction in a row group: over the rows, else it makes rows
  bool hides_only = false;           ///< in a row group: changes nothing in place where its group's mask is true

  constexpr void fields(auto&& field) {
    field(kind), field(code), field(part), field(varying), field(axes), field(first), field(sources), field(results),
        field(rank);
    field(sums_rows), field(hides_only);
    field.leading(sizes);
    field(flops), field(transcendentals), field(bytes);
  }
};

/// Places in `sizes` of a control step. The steps of its bodies follow it: first those of the condition of a while
/// loop, or of the first body of a branch, then those of the (second) body.
enum control_sizes : std::uint8_t {
  trips,          ///< of a scan
  first_steps,    ///< steps of the condition, or of the first body
  second_steps,   ///< steps of the loop's body, or of the second body
  loop_number,    ///< of the windows that move
  backwards,      ///< of a scan: whether the last trip comes first
  trip_buffer,    ///< the buffer that holds the number of the trip, or -1
  choice_buffer,  ///< the buffer that holds the predicate
};

/// Steps of all bodies of a control step.
constexpr std::int64_t steps_inside(const step& s) { return s.sizes[first_steps] + s.sizes[second_steps]; }

/// Rows that a reduction along rows combines one after the other, before it combines pairs of such leaves.
inline constexpr std::int64_t rows_in_leaf = 32;

/// Steps [first, first + count) that go together over blocks of rows: all steps for one block, then all for the next
/// one, so that what they hand to each other stays in a cache. Each reads and writes its own rows, reads other arrays
/// whole, or (a dot that sums over rows) adds to an array of its own; then the blocks of a batch come one after the
/// other, and each is as long as the part of the depth that a product sums at once. A reduction of all rows to one
/// leaves an array of partial results, a leaf of rows each, which are combined at the end. No block crosses a multiple
/// of `batch` rows.
struct row_group {
  int first = 0;
  int count = 0;
  std::int64_t rows = 0;
  std::int64_t batch = 0;
  std::int64_t row_bytes = 0;  ///< of what exists for a block only
  bool sums = false;           ///< whether some step sums over rows
  std::int64_t columns = 0;    ///< of scores that a mask hides in part; 0 where none may be left out
  int masking_step = -1;       ///< the step that hides them,
  int mask = -1;               ///< its access to the mask,
  int hidden = -1;             ///< and to what hidden scores are
  bool folds = false;          ///< whether some reduction folds all rows into one, by leaves of rows_in_leaf
  bool line = false;  ///< two steps: a reduction of long lines, and before it the step that makes their elements

  constexpr void fields(auto&& field) {
    field(first), field(count), field(rows), field(batch), field(row_bytes), field(sums);
    field(columns), field(masking_step), field(mask), field(hidden), field(folds), field(line);
  }
};

/// A value of the trace's interface: its global type, and for a result the argument whose memory it takes over, or -1.
struct interface_value {
  aval type{};
  int buffer = -1;
  int alias = -1;

  constexpr void fields(auto&& field) {
    field(type.type), field(type.rank), field(buffer), field(alias);
    field(type.unreduced), field(type.reduced), field(type.pending);
    for (int i = 0; i < type.rank; ++i) field(type.dims[i].extent), field(type.dims[i].axes);
  }
};

/// Where the instruction list of one fused kernel stands among the words.
struct code_span {
  int first = 0;
  int count = 0;
  constexpr void fields(auto&& field) { field(first), field(count); }
};

struct number {
  double value = 0;
  constexpr void fields(auto&& field) { field(value); }
};

struct word {
  int value = 0;
  constexpr void fields(auto&& field) { field(value); }
};

/// Where the parts of an instruction list stand, counted from its first word. Lanes and the numbers of sources,
/// instructions and results come first; then two words a source (type, source_mode), six an instruction (operation,
/// type, type of operands, registers of three operands) and two a result (type, register).
constexpr int source_word(int i) { return 4 + 2 * i; }
constexpr int instruction_word(int sources, int i) { return source_word(sources) + 6 * i; }
constexpr int result_word(int sources, int instructions, int i) {
  return instruction_word(sources, instructions) + 2 * i;
}

struct program {
  std::int64_t temporary_bytes = 0;  ///< of one device's arena
  std::int64_t host_bytes = 0;       ///< of host memory, for one device
  int loops = 0;
  list<buffer> buffers{};
  list<access> accesses{};
  list<step> steps{};
  list<interface_value> arguments{};
  list<interface_value> results{};
  list<number> constants{};
  list<code_span> codes{};
  list<word> words{};
  list<row_group> groups{};  ///< in the order of their steps

  /// The buffer whose memory `b` lies in: windows are looked through.
  constexpr int whole_buffer(int b) const {
    while (buffers[static_cast<std::size_t>(b)].where == space::window)
      b = static_cast<int>(buffers[static_cast<std::size_t>(b)].place);
    return b;
  }

  /// The words come last, so that they can be read without the rest.
  constexpr void fields(auto&& field) {
    field(temporary_bytes), field(host_bytes), field(loops);
    field(buffers), field(accesses), field(steps), field(groups);
    field(arguments), field(results), field(constants), field(codes);
    field(words);
  }
};

/// The first and the last of the steps that run as one with step `i`.
struct step_range {
  int first, last;
};
constexpr step_range joined_steps(const program& p, int i) {
  const auto part = [&](int step) { return p.steps[static_cast<std::size_t>(step)].part; };
  const auto joins_next = [&](int step) {
    return part(step) == product_part::makes_lhs || part(step) == product_part::makes_rhs ||
           (step + 1 < static_cast<int>(p.steps.size()) && part(step + 1) == product_part::finishes);
  };
  step_range range{i, i};
  while (range.first > 0 && joins_next(range.first - 1)) --range.first;
  while (joins_next(range.last)) ++range.last;
  return range;
}

/// The element type that chooses a step's kernel; fused steps and copies have kernels for all.
constexpr dtype kernel_type(const program& p, const step& s) {
  const bool typed = s.kind != step_kind::fused && !is_copy(s.kind) && !is_control(s.kind);
  return typed ? p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(s.first)].buffer)].type
               : dtype::f32;
}

}  // namespace tessera::graph
