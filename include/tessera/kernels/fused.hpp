// SPDX-License-Identifier: Apache-2.0
// One pass over memory for a whole list of elementwise instructions.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/core/shape.hpp>
#include <tessera/graph/op.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/kernels/fused_call.hpp>
#include <tessera/kernels/lanes.hpp>

#include <array>
#include <cstdint>
#include <utility>

namespace tessera::kernels {

/// An instruction list as `transform::lowering::fused_step` writes it, decoded at compile time.
template <auto Words>
struct fused_code {
  static constexpr int lanes = Words[0];
  static constexpr int sources = Words[1];
  static constexpr int instructions = Words[2];
  static constexpr int results = Words[3];
  static constexpr int registers = sources + instructions;

  static constexpr int source_word(int i) { return 4 + 2 * i; }
  static constexpr int instruction_word(int i) { return source_word(sources) + 6 * i; }
  static constexpr int result_word(int i) { return instruction_word(instructions) + 2 * i; }

  static constexpr dtype source_type(int i) {
    return static_cast<dtype>(Words[static_cast<std::size_t>(source_word(i))]);
  }
  static constexpr graph::source_mode mode(int i) {
    return static_cast<graph::source_mode>(Words[static_cast<std::size_t>(source_word(i) + 1)]);
  }
  static constexpr int field(int i, int k) { return Words[static_cast<std::size_t>(instruction_word(i) + k)]; }
  static constexpr graph::op code(int i) { return static_cast<graph::op>(field(i, 0)); }
  static constexpr dtype type(int i) { return static_cast<dtype>(field(i, 1)); }
  static constexpr dtype operand_type(int i) { return static_cast<dtype>(field(i, 2)); }
  static constexpr int operand(int i, int k) { return field(i, 3 + k); }
  static constexpr dtype result_type(int i) {
    return static_cast<dtype>(Words[static_cast<std::size_t>(result_word(i))]);
  }
  static constexpr int result_register(int i) { return Words[static_cast<std::size_t>(result_word(i) + 1)]; }
};

/// A fused kernel: for each vector of neighbours along the last dimension all sources are loaded, then all instructions
/// run in registers, then all results are stored; so results may lie where sources of the same extents lay. A partial
/// vector at the end goes through the same instructions, so an element's bits do not depend on where it stands.
template <auto Words>
struct fused_kernel {
  using code = fused_code<Words>;
  using lane_set = lanes_of_width<code::lanes>;
  static constexpr std::int64_t width = lane_set::width;
  template <dtype D>
  using vector = typename lane_set::template vector<D>;

  /// Registers by element type; the arrays are taken apart by the compiler.
  struct registers {
    vector<f32> float32[code::registers];
    vector<f64> float64[code::registers];
    vector<i32> int32[code::registers];
    vector<u32> uint32[code::registers];
    vector<bool_> boolean[code::registers];

    template <dtype D>
    auto& get(int i) {
      if constexpr (D == f32) return float32[i];
      else if constexpr (D == f64) return float64[i];
      else if constexpr (D == i32) return int32[i];
      else if constexpr (D == u32) return uint32[i];
      else return boolean[i];
    }
  };

  template <int I>
  static void load_once(registers& r, const fused_call& call, const std::int64_t* offsets) {
    constexpr dtype type = code::source_type(I);
    using element = storage_t<type>;
    if constexpr (code::mode(I) == graph::source_mode::repeated)
      r.template get<type>(I) = lane_set::template repeat<type>(static_cast<const element*>(call.data[I])[offsets[I]]);
    if constexpr (code::mode(I) == graph::source_mode::count_repeated)
      r.template get<type>(I) = lane_set::template repeat<type>(static_cast<element>(call.base[I] + offsets[I]));
  }

  template <int I, bool Whole>
  static void load(registers& r, const fused_call& call, const std::int64_t* offsets, std::int64_t column,
                   std::int64_t count) {
    constexpr dtype type = code::source_type(I);
    constexpr graph::source_mode mode = code::mode(I);
    using element = storage_t<type>;
    if constexpr (mode == graph::source_mode::contiguous) {
      const element* from = static_cast<const element*>(call.data[I]) + offsets[I] + column;
      if constexpr (Whole) r.template get<type>(I) = lane_set::template load<type>(from);
      else r.template get<type>(I) = lane_set::template load_some<type>(from, count, 1);
    } else if constexpr (mode == graph::source_mode::strided) {
      const std::int64_t stride = call.strides[I][call.rank - 1];
      const element* from = static_cast<const element*>(call.data[I]) + offsets[I] + column * stride;
      r.template get<type>(I) = lane_set::template load_some<type>(from, count, stride);
    } else if constexpr (mode == graph::source_mode::count) {
      r.template get<type>(I) = lane_set::template count_from<type>(call.base[I] + offsets[I] + column);
    }
  }

  template <int I>
  static void execute(registers& r) {
    constexpr dtype type = code::type(I);
    constexpr dtype from = code::operand_type(I);
    constexpr int place = code::sources + I;
    constexpr graph::op what = code::code(I);
    if constexpr (what == graph::op::select) {
      r.template get<type>(place) = lane_set::template choose<type>(r.template get<bool_>(code::operand(I, 0)),
                                                                    r.template get<type>(code::operand(I, 1)),
                                                                    r.template get<type>(code::operand(I, 2)));
    } else if constexpr (what == graph::op::convert) {
      r.template get<type>(place) = lane_set::template convert<type, from>(r.template get<from>(code::operand(I, 0)));
    } else if constexpr (about(what).operands == 1) {
      r.template get<type>(place) = lane_set::template unary<what, from>(r.template get<from>(code::operand(I, 0)));
    } else {
      r.template get<type>(place) = lane_set::template binary<what, from>(r.template get<from>(code::operand(I, 0)),
                                                                          r.template get<from>(code::operand(I, 1)));
    }
  }

  template <int I, bool Whole>
  static void store(registers& r, const fused_call& call, const std::int64_t* offsets, std::int64_t column,
                    std::int64_t count) {
    constexpr dtype type = code::result_type(I);
    constexpr int array = code::sources + I;
    auto* to = static_cast<storage_t<type>*>(call.data[array]) + offsets[array] + column;
    if constexpr (Whole) lane_set::template store<type>(to, r.template get<type>(code::result_register(I)));
    else lane_set::template store_some<type>(to, r.template get<type>(code::result_register(I)), count);
  }

  template <bool Whole>
  static void block(registers& r, const fused_call& call, const std::int64_t* offsets, std::int64_t column,
                    std::int64_t count) {
    [&]<int... I>(std::integer_sequence<int, I...>) { (load<I, Whole>(r, call, offsets, column, count), ...); }
    (std::make_integer_sequence<int, code::sources>{});
    [&]<int... I>(std::integer_sequence<int, I...>) { (execute<I>(r), ...); }
    (std::make_integer_sequence<int, code::instructions>{});
    [&]<int... I>(std::integer_sequence<int, I...>) { (store<I, Whole>(r, call, offsets, column, count), ...); }
    (std::make_integer_sequence<int, code::results>{});
  }

  /// Element offsets of all arrays at the start of a row.
  static void row_offsets(const fused_call& call, std::int64_t row, std::int64_t* offsets) {
    for (int a = 0; a < code::sources + code::results; ++a) offsets[a] = 0;
    for (int d = call.rank - 2; d >= 0; --d) {
      const std::int64_t at = row % call.extents[d];
      row /= call.extents[d];
      for (int a = 0; a < code::sources + code::results; ++a) offsets[a] += at * call.strides[a][d];
    }
  }

  static void run(const fused_call& call, const fused_range& range) {
    std::int64_t offsets[code::sources + code::results];
    for (std::int64_t row = range.first_row; row < range.last_row; ++row) {
      row_offsets(call, row, offsets);
      registers r;
      [&]<int... I>(std::integer_sequence<int, I...>) { (load_once<I>(r, call, offsets), ...); }
      (std::make_integer_sequence<int, code::sources>{});
      std::int64_t column = range.first_column;
      for (; column + width <= range.last_column; column += width) block<true>(r, call, offsets, column, width);
      if (column < range.last_column) block<false>(r, call, offsets, column, range.last_column - column);
    }
  }
};

}  // namespace tessera::kernels
