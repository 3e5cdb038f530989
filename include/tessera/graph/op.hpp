// SPDX-License-Identifier: Apache-2.0
// The operations a node may be, and what passes ask about each of them, in one table.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::graph {

/// How passes treat an operation.
enum class op_kind : std::uint8_t {
  source,
  elementwise,
  view,
  movement,
  contraction,
  reduction,
  rows,
  collective,
  check,
  transfer,  ///< between device memory and host memory
  list,
  control,
  result,
  custom,
  manual  ///< of regions: their boundaries, and the collectives of shard_map; later passes turn them into others
};

// name, kind, operands, whether an element costs a transcendental function
#define TESSERA_OPS(X)                    \
  X(parameter, source, 0, false)          \
  X(constant, source, 0, false)           \
  X(iota, source, 0, false)               \
  X(neg, elementwise, 1, false)           \
  X(abs, elementwise, 1, false)           \
  X(sign, elementwise, 1, false)          \
  X(square, elementwise, 1, false)        \
  X(sqrt, elementwise, 1, false)          \
  X(rsqrt, elementwise, 1, false)         \
  X(exp, elementwise, 1, true)            \
  X(log, elementwise, 1, true)            \
  X(log1p, elementwise, 1, true)          \
  X(tanh, elementwise, 1, true)           \
  X(logistic, elementwise, 1, true)       \
  X(gelu, elementwise, 1, true)           \
  X(gelu_slope, elementwise, 1, true)     \
  X(sin, elementwise, 1, true)            \
  X(cos, elementwise, 1, true)            \
  X(erf, elementwise, 1, true)            \
  X(relu, elementwise, 1, false)          \
  X(expm1, elementwise, 1, true)          \
  X(exp2, elementwise, 1, true)           \
  X(log2, elementwise, 1, true)           \
  X(erf_inv, elementwise, 1, true)        \
  X(tan, elementwise, 1, true)            \
  X(asin, elementwise, 1, true)           \
  X(acos, elementwise, 1, true)           \
  X(atan, elementwise, 1, true)           \
  X(sinh, elementwise, 1, true)           \
  X(cosh, elementwise, 1, true)           \
  X(floor, elementwise, 1, false)         \
  X(ceil, elementwise, 1, false)          \
  X(round, elementwise, 1, false)         \
  X(trunc, elementwise, 1, false)         \
  X(bit_not, elementwise, 1, false)       \
  X(logical_not, elementwise, 1, false)   \
  X(convert, elementwise, 1, false)       \
  X(copy, elementwise, 1, false)          \
  X(stop_gradient, elementwise, 1, false) \
  X(name, elementwise, 1, false)          \
  X(add, elementwise, 2, false)           \
  X(sub, elementwise, 2, false)           \
  X(mul, elementwise, 2, false)           \
  X(div, elementwise, 2, false)           \
  X(max, elementwise, 2, false)           \
  X(min, elementwise, 2, false)           \
  X(pow, elementwise, 2, true)            \
  X(atan2, elementwise, 2, true)          \
  X(mod, elementwise, 2, false)           \
  X(floor_div, elementwise, 2, false)     \
  X(bit_and, elementwise, 2, false)       \
  X(bit_or, elementwise, 2, false)        \
  X(bit_xor, elementwise, 2, false)       \
  X(shift_left, elementwise, 2, false)    \
  X(shift_right, elementwise, 2, false)   \
  X(eq, elementwise, 2, false)            \
  X(ne, elementwise, 2, false)            \
  X(lt, elementwise, 2, false)            \
  X(le, elementwise, 2, false)            \
  X(gt, elementwise, 2, false)            \
  X(ge, elementwise, 2, false)            \
  X(logical_and, elementwise, 2, false)   \
  X(logical_or, elementwise, 2, false)    \
  X(select, elementwise, 3, false)        \
  X(threefry_hi, elementwise, 3, false)   \
  X(threefry_lo, elementwise, 3, false)   \
  X(threefry_bits, elementwise, 3, false) \
  X(reshape, view, 1, false)              \
  X(transpose, movement, 1, false)        \
  X(broadcast, movement, 1, false)        \
  X(reshard, movement, 1, false)          \
  X(empty, source, 0, false)              \
  X(slice, movement, 1, false)            \
  X(update_slice, movement, 2, false)     \
  X(windows, movement, 1, false)          \
  X(overlap_add, movement, 1, false)      \
  X(dynamic_slice, movement, 2, false)    \
  X(dynamic_update, movement, 3, false)   \
  X(gather, movement, 2, false)           \
  X(scatter, movement, 3, false)          \
  X(dot, contraction, 2, false)           \
  X(reduce_sum, reduction, 1, false)      \
  X(reduce_max, reduction, 1, false)      \
  X(reduce_min, reduction, 1, false)      \
  X(reduce_prod, reduction, 1, false)     \
  X(cumulative, rows, 1, false)           \
  X(recurrence, rows, 2, false)           \
  X(argsort, rows, 1, false)              \
  X(custom1, custom, 1, false)            \
  X(custom2, custom, 2, false)            \
  X(custom3, custom, 3, false)            \
  X(softmax, rows, 1, true)               \
  X(log_softmax, rows, 1, true)           \
  X(softmax_grad, rows, 2, false)         \
  X(log_softmax_grad, rows, 2, true)      \
  X(check_range, check, 1, false)         \
  X(to_host, transfer, 1, false)          \
  X(from_host, transfer, 1, false)        \
  X(no_arguments, list, 0, false)         \
  X(argument, list, 2, false)             \
  X(control, control, 1, false)           \
  X(result, result, 1, false)             \
  X(all_reduce, collective, 1, false)     \
  X(all_gather, collective, 1, false)     \
  X(reduce_scatter, collective, 1, false) \
  X(all_to_all, collective, 1, false)     \
  X(permute, collective, 1, false)        \
  X(local_slice, movement, 1, false)      \
  X(to_local, manual, 1, false)           \
  X(to_global, manual, 1, false)          \
  X(pcast, manual, 1, false)              \
  X(psum, manual, 1, false)               \
  X(gather_blocks, manual, 1, false)      \
  X(scatter_blocks, manual, 1, false)     \
  X(take_block, manual, 1, false)         \
  X(permute_blocks, manual, 1, false)     \
  X(exchange_blocks, manual, 1, false)    \
  X(axis_index, manual, 0, false)         \
  X(to_auto, manual, 1, false)            \
  X(to_explicit, manual, 1, false)        \
  X(constrain, manual, 1, false)

enum class op : std::uint8_t {
#define TESSERA_OP_NAME(name, kind, operands, transcendental) name,
  TESSERA_OPS(TESSERA_OP_NAME)
#undef TESSERA_OP_NAME
};

struct op_row {
  std::string_view name;
  op_kind kind;
  int operands;
  bool transcendental;
};

/// Outside the function that reads it: a compiler that interprets constant expressions would build it at every call.
inline constexpr op_row op_table[] = {
#define TESSERA_OP_ROW(name, kind, operands, transcendental) {#name, op_kind::kind, operands, transcendental},
    TESSERA_OPS(TESSERA_OP_ROW)
#undef TESSERA_OP_ROW
};

/// The row of the table for `code`.
constexpr const op_row& about(op code) { return op_table[static_cast<int>(code)]; }

/// What a user calls the operation.
constexpr std::string_view user_name(op code) {
  switch (about(code).kind) {
    case op_kind::custom: return "custom_op";
    default: return about(code).name;
  }
}

constexpr bool is(op code, op_kind kind) { return op_table[static_cast<int>(code)].kind == kind; }

/// Whether the operation gives bool whatever its operands are.
constexpr bool is_predicate(op code) {
  return code == op::eq || code == op::ne || code == op::lt || code == op::le || code == op::gt || code == op::ge ||
         code == op::logical_and || code == op::logical_or || code == op::logical_not;
}

}  // namespace tessera::graph
