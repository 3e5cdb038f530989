// SPDX-License-Identifier: Apache-2.0
// Elementwise operations: arithmetic, comparisons, logic, activations.
#pragma once

#include <tessera/ops/apply.hpp>

namespace tessera {

namespace ops {

/// What an operation asks of its operands' element type.
enum class wants : std::uint8_t { anything, numbers, floats, bools };

constexpr message unmet(wants what, dtype d) {
  if (what == wants::numbers && d == dtype::bool_) return message::elementwise_needs_number;
  if (what == wants::floats && !is_floating(d)) return message::elementwise_needs_float;
  if (what == wants::bools && d != dtype::bool_) return message::elementwise_needs_bool;
  return message::none;
}

template <op Code, wants What>
inline constexpr auto elementwise_rule = [](std::span<const aval> x, const mesh_value& mesh) {
  if (const message why = unmet(What, x[0].type); why != message::none) return refuse(why);
  ruling ruled = sharding::elementwise(x, mesh);
  if (graph::is_predicate(Code)) ruled.result.type = dtype::bool_;
  return ruled;
};

/// The rule of a sum.
inline constexpr auto add_rule = elementwise_rule<op::add, wants::numbers>;

/// y = f(x), element by element; y has x's type.
template <text Name, op Code, wants What>
struct unary_operation {
  constexpr auto operator()(const ArrayLike auto& x) const {
    return apply<Name, elementwise_rule<Code, What>>(write_plain<Code>{}, x);
  }
};

/// z = f(x, y), element by element. Extents broadcast as NumPy's do; an uncut dimension adapts to a cut one (a local
/// slice forward, an all-gather backward), two different cuts do not compile; a number takes the array's dtype.
template <text Name, op Code, wants What>
struct binary_operation {
  template <Operand X, Operand Y>
  requires(ArrayLike<X> || ArrayLike<Y>) constexpr auto operator()(const X& x, const Y& y) const {
    return apply<Name, elementwise_rule<Code, What>>(write_plain<Code>{}, x, y);
  }
};

}  // namespace ops

/// Each takes an array and gives one of the same type. Gradients are those of calculus; relu's, abs's and sign's are 0
/// at 0. No collective. Source: jax.numpy, jax.nn.
inline constexpr ops::unary_operation<"abs", graph::op::abs, ops::wants::numbers> abs{};
inline constexpr ops::unary_operation<"sign", graph::op::sign, ops::wants::numbers> sign{};
inline constexpr ops::unary_operation<"square", graph::op::square, ops::wants::numbers> square{};
inline constexpr ops::unary_operation<"sqrt", graph::op::sqrt, ops::wants::floats> sqrt{};
inline constexpr ops::unary_operation<"rsqrt", graph::op::rsqrt, ops::wants::floats> rsqrt{};
inline constexpr ops::unary_operation<"exp", graph::op::exp, ops::wants::floats> exp{};
inline constexpr ops::unary_operation<"log", graph::op::log, ops::wants::floats> log{};
inline constexpr ops::unary_operation<"log1p", graph::op::log1p, ops::wants::floats> log1p{};
inline constexpr ops::unary_operation<"tanh", graph::op::tanh, ops::wants::floats> tanh{};
inline constexpr ops::unary_operation<"sigmoid", graph::op::logistic, ops::wants::floats> sigmoid{};
inline constexpr ops::unary_operation<"sin", graph::op::sin, ops::wants::floats> sin{};
inline constexpr ops::unary_operation<"cos", graph::op::cos, ops::wants::floats> cos{};
inline constexpr ops::unary_operation<"erf", graph::op::erf, ops::wants::floats> erf{};
inline constexpr ops::unary_operation<"relu", graph::op::relu, ops::wants::numbers> relu{};
inline constexpr ops::unary_operation<"logical_not", graph::op::logical_not, ops::wants::bools> logical_not{};
inline constexpr ops::unary_operation<"neg", graph::op::neg, ops::wants::numbers> negative{};

/// An array that its users see as a constant: the identity forward, no gradient backward.
inline constexpr ops::unary_operation<"stop_gradient", graph::op::stop_gradient, ops::wants::anything> stop_gradient{};

inline constexpr ops::binary_operation<"add", graph::op::add, ops::wants::numbers> add{};
inline constexpr ops::binary_operation<"subtract", graph::op::sub, ops::wants::numbers> subtract{};
inline constexpr ops::binary_operation<"multiply", graph::op::mul, ops::wants::numbers> multiply{};
inline constexpr ops::binary_operation<"divide", graph::op::div, ops::wants::floats> divide{};
inline constexpr ops::binary_operation<"power", graph::op::pow, ops::wants::floats> power{};

/// NaN where an operand is; where both are equal each gets half of the gradient.
inline constexpr ops::binary_operation<"maximum", graph::op::max, ops::wants::numbers> maximum{};
inline constexpr ops::binary_operation<"minimum", graph::op::min, ops::wants::numbers> minimum{};

/// Each gives bool.
inline constexpr ops::binary_operation<"equal", graph::op::eq, ops::wants::anything> equal{};
inline constexpr ops::binary_operation<"not_equal", graph::op::ne, ops::wants::anything> not_equal{};
inline constexpr ops::binary_operation<"less", graph::op::lt, ops::wants::numbers> less{};
inline constexpr ops::binary_operation<"less_equal", graph::op::le, ops::wants::numbers> less_equal{};
inline constexpr ops::binary_operation<"greater", graph::op::gt, ops::wants::numbers> greater{};
inline constexpr ops::binary_operation<"greater_equal", graph::op::ge, ops::wants::numbers> greater_equal{};
inline constexpr ops::binary_operation<"logical_and", graph::op::logical_and, ops::wants::bools> logical_and{};
inline constexpr ops::binary_operation<"logical_or", graph::op::logical_or, ops::wants::bools> logical_or{};

template <class X, class Y>
concept OperatorOperands = Operand<X> && Operand<Y> &&(ArrayLike<X> || ArrayLike<Y>);

constexpr auto operator-(const ArrayLike auto& x) { return negative(x); }
constexpr auto operator!(const ArrayLike auto& x) { return logical_not(x); }

#define TESSERA_OPERATOR(symbol, function) \
  template <class X, class Y>              \
  requires OperatorOperands<X, Y>          \
  constexpr auto operator symbol(const X& x, const Y& y) { return function(x, y); }
TESSERA_OPERATOR(+, add)
TESSERA_OPERATOR(-, subtract)
TESSERA_OPERATOR(*, multiply)
TESSERA_OPERATOR(/, divide)
TESSERA_OPERATOR(==, equal)
TESSERA_OPERATOR(!=, not_equal)
TESSERA_OPERATOR(<, less)
TESSERA_OPERATOR(<=, less_equal)
TESSERA_OPERATOR(>, greater)
TESSERA_OPERATOR(>=, greater_equal)
TESSERA_OPERATOR(&&, logical_and)
TESSERA_OPERATOR(||, logical_or)
#undef TESSERA_OPERATOR

/// x sigmoid(x).
inline constexpr auto silu = [](const ArrayLike auto& x) { return x * sigmoid(x); };

/// The tanh approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Source: Hendrycks and Gimpel 2016.
inline constexpr auto gelu = [](const ArrayLike auto& x) {
  return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * (square(x) * x))));
};

}  // namespace tessera
