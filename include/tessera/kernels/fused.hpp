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
#include <cstddef>
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

  static constexpr int source_word(int i) { return graph::source_word(i); }
  static constexpr int instruction_word(int i) { return graph::instruction_word(sources, i); }
  static constexpr int result_word(int i) { return graph::result_word(sources, instructions, i); }

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
/// run in registers, then all results are stored; so results may lie where sources of the same extents lay.
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
    vector<bf16> bfloat[code::registers];
    vector<f16> half[code::registers];

    template <dtype D>
    auto& get(int i) {
      if constexpr (D == f32) return float32[i];
      else if constexpr (D == f64) return float64[i];
      else if constexpr (D == i32) return int32[i];
      else if constexpr (D == u32) return uint32[i];
      else if constexpr (D == bf16) return bfloat[i];
      else if constexpr (D == f16) return half[i];
      else return boolean[i];
    }
  };

  /// Vectors that go through the instructions together: one fills the processor, but where random bits are made. There
  /// eight are faster than four even where registers do not suffice: there is room beside the arithmetic to store.
  static constexpr std::size_t together = [] {
    for (int i = 0; i < code::instructions; ++i)
      if (code::code(i) != graph::op::select && about(code::code(i)).operands == 3) return 8;
    return 1;
  }();

  template <int I>
  static void load_once(registers& r, const fused_row& row) {
    constexpr dtype type = code::source_type(I);
    using element = storage_t<type>;
    if constexpr (code::mode(I) == graph::source_mode::repeated)
      r.template get<type>(I) = lane_set::template repeat<type>(*reinterpret_cast<const element*>(row.at[I]));
    if constexpr (code::mode(I) == graph::source_mode::count_repeated)
      r.template get<type>(I) = lane_set::template repeat<type>(static_cast<element>(row.counts[I]));
  }

  /// Neighbours' positions, wrapping around, from those of the first: one vector of numbers is cheaper to add than to
  /// make of one number.
  template <int I, std::size_t Count>
  static void count_on(registers (&r)[Count]) {
    if constexpr (code::mode(I) == graph::source_mode::count && code::source_type(I) == u32)
      for (std::size_t i = 1; i < Count; ++i)
        r[i].template get<u32>(I) =
            r[0].template get<u32>(I) + lane_set::template repeat<u32>(static_cast<std::uint32_t>(i * width));
  }

  template <int I>
  static void load(registers& r, const fused_row& row, std::int64_t column) {
    constexpr dtype type = code::source_type(I);
    constexpr graph::source_mode mode = code::mode(I);
    const auto* from = reinterpret_cast<const storage_t<type>*>(row.at[I]);
    if constexpr (mode == graph::source_mode::contiguous) {
      __builtin_prefetch(row.at[I] + column * static_cast<std::int64_t>(sizeof *from) + row.ahead[I]);
      r.template get<type>(I) = lane_set::template load<type>(from + column);
    } else if constexpr (mode == graph::source_mode::strided) {
      r.template get<type>(I) = lane_set::template load_strided<type>(from + column * row.strides[I], row.strides[I]);
    } else if constexpr (mode == graph::source_mode::count) {
      r.template get<type>(I) = lane_set::template count_from<type>(row.counts[I] + column);
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

  template <int I, std::size_t Count>
  static void execute_together(registers (&r)[Count]) {
    constexpr graph::op what = code::code(I);
    const auto at = [&r](int place) {
      return [&r, place ](std::size_t i) -> auto& { return r[i].template get<code::type(I)>(place); };
    };
    if constexpr (what == graph::op::erf_inv && code::type(I) == f32) {
      lane_set::template inverse_error_functions<Count>(at(code::sources + I), at(code::operand(I, 0)));
    } else if constexpr (what == graph::op::select || about(what).operands != 3) {
      for (registers& each : r) execute<I>(each);
    } else {
      lane_set::template ternary<what, code::type(I), Count>(at(code::sources + I), at(code::operand(I, 0)),
                                                             at(code::operand(I, 1)), at(code::operand(I, 2)));
    }
  }

  template <int I>
  static void store(registers& r, const fused_row& row, std::int64_t column) {
    constexpr dtype type = code::result_type(I);
    auto* to = reinterpret_cast<storage_t<type>*>(row.at[code::sources + I]) + column;
    __builtin_prefetch(reinterpret_cast<std::byte*>(to) + row.ahead[code::sources + I], 1);
    lane_set::template store<type>(to, r.template get<type>(code::result_register(I)));
  }

  /// Columns from `first` on, as long as Count vectors are left; returns the first column that is left.
  template <std::size_t Count, int... Source, int... Instruction, int... Result>
  static std::int64_t loop(const fused_row& row, std::int64_t first, std::int64_t columns,
                           std::integer_sequence<int, Source...>, std::integer_sequence<int, Instruction...>,
                           std::integer_sequence<int, Result...>) {
    constexpr std::int64_t step = static_cast<std::int64_t>(Count) * width;
    registers r[Count];
    for (registers& each : r) (load_once<Source>(each, row), ...);
    std::int64_t column = first;
    for (; columns - column >= step; column += step) {
      for (std::size_t i = 0; i < Count; ++i)
        (load<Source>(r[i], row, column + static_cast<std::int64_t>(i) * width), ...);
      (count_on<Source>(r), ...);
      (execute_together<Instruction>(r), ...);
      for (std::size_t i = 0; i < Count; ++i)
        (store<Result>(r[i], row, column + static_cast<std::int64_t>(i) * width), ...);
    }
    return column;
  }
  template <std::size_t Count>
  static std::int64_t loop(const fused_row& row, std::int64_t first, std::int64_t columns) {
    return loop<Count>(row, first, columns, std::make_integer_sequence<int, code::sources>{},
                       std::make_integer_sequence<int, code::instructions>{},
                       std::make_integer_sequence<int, code::results>{});
  }

  static void loop(const fused_row& row, std::int64_t vectors) {
    std::int64_t done = 0;
    if constexpr (together > 1) done = loop<together>(row, 0, vectors * width);
    if constexpr (together > 2) done = loop<2>(row, done, vectors * width);
    loop<1>(row, done, vectors * width);
  }

  static void run(const fused_call& call, const fused_range& range) {
    run_fused_rows(Words.data(), width, &loop, call, range);
  }
};

}  // namespace tessera::kernels
