// SPDX-License-Identifier: Apache-2.0
// What lowering yields and the executor walks: a fixed list of steps over buffers at fixed places.
#pragma once

#include <tessera/core/aval.hpp>
#include <tessera/graph/graph.hpp>

#include <array>
#include <bit>
#include <cstdint>

namespace tessera::graph {

/// Where a buffer lies.
enum class space : std::uint8_t { temporary, argument, result, constant };

/// Memory for one block of a value; `place` is an offset in a device's arena in bytes, or the number of an argument,
/// result or constant.
struct buffer {
  space where = space::temporary;
  std::int64_t place = 0;
  std::int64_t bytes = 0;
  dtype type = dtype::f32;
  axis_set varying = 0;
  axis_list summed = 0;  ///< axes over which devices of one process have added up their blocks as they made them

  constexpr void fields(auto&& field) {
    field(where), field(place), field(bytes), field(type), field(varying), field(summed);
  }
};

/// How a fused step reads or writes a buffer (or counts, if `buffer` is -1): element strides along the step's
/// dimensions, and the stride from block to block along `slice_axes` where each device reads a block of its own.
struct access {
  int buffer = -1;
  std::int64_t strides[max_rank]{};
  axis_list slice_axes = 0;
  std::int64_t slice_stride = 0;

  constexpr void fields(auto&& field) {
    field(buffer), field(slice_axes), field(slice_stride);
    for (std::int64_t& s : strides) field(s);
  }
};

/// How a fused instruction list gets at a source along the innermost dimension: one element for all, neighbours,
/// elements at a distance, or no memory but the position itself.
enum class source_mode : std::uint8_t { repeated, contiguous, strided, count_repeated, count };

enum class step_kind : std::uint8_t {
  fused,
  dot,
  reduce,
  softmax,
  log_softmax,
  softmax_grad,
  log_softmax_grad,
  check_range,
  copy_out,
  all_reduce,
  all_gather,
  reduce_scatter
};

inline constexpr std::size_t step_kinds = static_cast<std::size_t>(step_kind::reduce_scatter) + 1;

constexpr bool is_collective(step_kind kind) { return kind >= step_kind::all_reduce; }

/// One kernel call for every distinct shard, or one collective. `accesses` [first, first + sources) are read, the next
/// `results` are written. `sizes`, by kind: fused: extents; dot: m, n, k, batch, whether lhs and rhs lie transposed;
/// reduce: kind, outer, n, inner; rows: rows, columns; check_range: bound, elements, the axes that cut each dimension;
/// all_reduce: kind; all_gather and reduce_scatter: outer, block, inner, kind.
struct step {
  step_kind kind = step_kind::fused;
  int code = -1;  ///< of a fused step: which instruction list
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

  constexpr void fields(auto&& field) {
    field(kind), field(code), field(varying), field(axes), field(first), field(sources), field(results), field(rank);
    for (std::int64_t& s : sizes) field(s);
    field(flops), field(transcendentals), field(bytes);
  }
};

/// A value of the trace's interface: its global type, and for a result the argument whose memory it takes over, or -1.
struct interface_value {
  aval type{};
  int buffer = -1;
  int alias = -1;

  constexpr void fields(auto&& field) {
    field(type.type), field(type.rank), field(buffer), field(alias);
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

struct program {
  std::int64_t temporary_bytes = 0;  ///< of one device's arena
  list<buffer> buffers{};
  list<access> accesses{};
  list<step> steps{};
  list<interface_value> arguments{};
  list<interface_value> results{};
  list<number> constants{};
  list<code_span> codes{};
  list<word> words{};

  /// The words come last, so that they can be read without the rest.
  constexpr void fields(auto&& field) {
    field(temporary_bytes);
    field(buffers), field(accesses), field(steps), field(arguments), field(results), field(constants), field(codes);
    field(words);
  }
};

/// The element type that chooses a step's kernel; fused steps and copies have kernels for all.
constexpr dtype kernel_type(const program& p, const step& s) {
  const bool typed = s.kind != step_kind::fused && s.kind != step_kind::copy_out;
  return typed ? p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(s.first)].buffer)].type
               : dtype::f32;
}

}  // namespace tessera::graph
