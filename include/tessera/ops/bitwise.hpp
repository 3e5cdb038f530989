// SPDX-License-Identifier: Apache-2.0
// Operations on the bits of integers, and exclusive or of bool.
#pragma once

#include <tessera/ops/elementwise.hpp>

namespace tessera {

/// int32 or uint32 of one dtype (or one and a number) -> that dtype; extents and cuts as in `add`. No gradient. Source:
/// jax.numpy.
inline constexpr ops::unary_operation<"bitwise_not", graph::op::bit_not, ops::wants::integers> bitwise_not{};
inline constexpr ops::binary_operation<"bitwise_and", graph::op::bit_and, ops::wants::integers> bitwise_and{};
inline constexpr ops::binary_operation<"bitwise_or", graph::op::bit_or, ops::wants::integers> bitwise_or{};
inline constexpr ops::binary_operation<"bitwise_xor", graph::op::bit_xor, ops::wants::integers> bitwise_xor{};

/// Left shifts fill with 0, right shifts with the sign (0 in uint32). A shift by 32 or more, or by less than 0, leaves
/// nothing but that.
inline constexpr ops::binary_operation<"left_shift", graph::op::shift_left, ops::wants::integers> left_shift{};
inline constexpr ops::binary_operation<"right_shift", graph::op::shift_right, ops::wants::integers> right_shift{};

/// bool: whether just one of two is true.
inline constexpr ops::binary_operation<"logical_xor", graph::op::ne, ops::wants::bools> logical_xor{};

constexpr auto operator~(const ArrayLike auto& x) { return bitwise_not(x); }

#define TESSERA_OPERATOR(symbol, function) \
  template <class X, class Y>              \
  requires OperatorOperands<X, Y>          \
  constexpr auto operator symbol(const X& x, const Y& y) { return function(x, y); }
TESSERA_OPERATOR(&, bitwise_and)
TESSERA_OPERATOR(|, bitwise_or)
TESSERA_OPERATOR(^, bitwise_xor)
TESSERA_OPERATOR(<<, left_shift)
TESSERA_OPERATOR(>>, right_shift)
#undef TESSERA_OPERATOR

}  // namespace tessera
