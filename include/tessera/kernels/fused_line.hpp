// SPDX-License-Identifier: Apache-2.0
// A fused kernel that may combine what it makes in registers, instead of storing it.
#pragma once

#include <tessera/kernels/detail/combine.hpp>
#include <tessera/kernels/fused.hpp>
#include <tessera/kernels/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tessera::kernels {

/// An instruction list with one result, floats as wide as its vectors, of which lines are reduced.
template <auto Words, reduce_kind Kind>
struct fused_line {
  using kernel = fused_kernel<Words>;
  using code = fused_code<Words>;
  static constexpr dtype type = code::result_type(0);
  using element = storage_t<type>;
  using registers = typename kernel::registers;

  /// As fused_kernel; where the range has `lanes`, its columns, whole rows of lanes of the call's one row, are combined
  /// as detail::combine_rows combines them in memory, into those lanes.
  static void run(const fused_call& call, const fused_range& range) {
    if (range.lanes == nullptr) return kernel::run(call, range);
    const fused_row row = only_row(call);
    detail::with_operation_of<element, Kind>([&](const auto& op) {
      const auto made = detail::combine_leaves_of<element>(
          op, 0, (range.last_column - range.first_column) / detail::lane_count<element>,
          [&](std::int64_t first, std::int64_t last) {
            return leaf(op, row, range.first_column + first * detail::lane_count<element>, last - first);
          });
      for (std::size_t j = 0; j < made.size(); ++j)
        made[j].store_unaligned(static_cast<element*>(range.lanes) + static_cast<std::int64_t>(j) * kernel::width);
    });
  }

 private:
  static fused_row only_row(const fused_call& call) {
    fused_row row;
    for (int a = 0; a < code::sources; ++a) {
      row.at[a] = static_cast<std::byte*>(call.data[a]);
      row.counts[a] = call.base[a];
      row.ahead[a] = fused_row::usually_ahead;
      row.strides[a] = call.rank == 0 ? 0 : call.strides[a][0];
    }
    return row;
  }

  template <class Op>
  static detail::lane_set<element> leaf(const Op& op, const fused_row& row, std::int64_t column, std::int64_t rows) {
    return leaf(op, row, column, rows, std::make_integer_sequence<int, code::sources>{},
                std::make_integer_sequence<int, code::instructions>{});
  }
  template <class Op, int... Source, int... Instruction>
  static detail::lane_set<element> leaf(const Op& op, const fused_row& row, std::int64_t column, std::int64_t rows,
                                        std::integer_sequence<int, Source...>,
                                        std::integer_sequence<int, Instruction...>) {
    registers r[1];
    (kernel::template load_once<Source>(r[0], row), ...);
    detail::lane_set<element> made;
    made.fill(detail::batch<element>(op.identity));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < made.size(); ++j, column += kernel::width) {
        (kernel::template load<Source>(r[0], row, column), ...);
        (kernel::template execute_together<Instruction>(r), ...);
        made[j] = op(made[j], r[0].template get<type>(code::result_register(0)));
      }
    return made;
  }
};

}  // namespace tessera::kernels
