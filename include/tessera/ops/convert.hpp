// SPDX-License-Identifier: Apache-2.0
// Change of element type.
#pragma once

#include <tessera/ops/apply.hpp>

namespace tessera {

namespace ops {

template <dtype To>
inline constexpr auto convert_rule = handles_marks{[](std::span<const aval> x, const mesh_value&) {
  const bool exact = is_floating(To) || (!is_floating(x[0].type) && To != dtype::bool_);
  if (x[0].unreduced != 0 && !exact) return refuse(message::astype_unreduced);
  ruling ruled{x[0]};
  ruled.result.type = To;
  return ruled;
}};

}  // namespace ops

/// `astype<f32>(x)`: the same extents, cuts, unreduced and reduced axes (but no rounding of a pending sum), each
/// element converted as C++ does (float to int truncates; NaN and what does not fit become 0 and the nearest end; to
/// bool: not 0). The gradient is converted back; through integers there is none. Source: jax.numpy.astype.
template <dtype To>
constexpr auto astype(const ArrayLike auto& x) {
  return ops::apply<"astype", ops::convert_rule<To>>(
      [](const std::array<graph::value, 1>& v, const aval&) { return graph::convert(v[0], To); }, x);
}

/// An argument of products, behind the operands: what their sums are kept in and the result has, as
/// `matmul(a, b, preferred_element_type<f32>)` of 16-bit operands. Source: jax.lax.dot_general.
template <dtype D>
struct preferred_element_type_t {};
template <dtype D>
inline constexpr preferred_element_type_t<D> preferred_element_type{};

namespace ops {

template <class X>
constexpr std::int64_t element_size() {
  if constexpr (Expr<X>) return info(X::type.type).size;
  else if constexpr (Variable<X>) return info(X::element).size;
  else return 0;
}

/// f of the operands with results of type D: wider ones are made of the operands as they are (no copy is made of 16-bit
/// operands of a product), narrower ones by rounding.
template <dtype D, class F, class... Xs>
constexpr auto preferring(F f, const Xs&... xs) {
  if constexpr (((element_size<Xs>() <= info(D).size) && ...)) return f(astype<D>(xs)...);
  else return astype<D>(f(xs...));
}

/// The one 16-bit type that all floating-point arrays among the arguments have; float32 if there is none.
template <class... Xs>
constexpr dtype small_type() {
  if constexpr (((Expr<Xs> || Variable<Xs>)&&...)) {
    dtype found = dtype::f32;
    bool same = true;
    const auto look = [&](dtype d) {
      if (!is_floating(d)) return;
      same = same && (found == dtype::f32 || found == d) && is_sixteen_bit(d);
      found = d;
    };
    (look(element_of<Xs>()), ...);
    return same ? found : dtype::f32;
  } else {
    return dtype::f32;
  }
}

/// f of floating-point arrays of one 16-bit type converted to float32; of all others as they are.
template <class F, class... Xs>
constexpr auto in_float32(F f, const Xs&... xs) {
  if constexpr (is_sixteen_bit(small_type<Xs...>())) {
    const auto widened = []<class X>(const X& x) {
      if constexpr (is_floating(element_of<X>())) return astype<dtype::f32>(x);
      else return x;
    };
    return f(widened(xs)...);
  } else {
    return f(xs...);
  }
}

}  // namespace ops

}  // namespace tessera
