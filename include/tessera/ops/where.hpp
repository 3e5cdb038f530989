// SPDX-License-Identifier: Apache-2.0
// Choosing between two arrays element by element.
#pragma once

#include <tessera/ops/apply.hpp>

namespace tessera {

namespace ops {
inline constexpr auto where_rule = handles_marks{
    [](std::span<const aval> x, const mesh_value& mesh) { return sharding::where(x[2], x[0], x[1], mesh); }};
inline constexpr auto write_where = [](const std::array<graph::value, 3>& x, const aval&) {
  return graph::select(x[2], x[0], x[1]);
};
}  // namespace ops

/// predicate ? on_true : on_false, element by element: bool and two arrays (or an array and a number) of one dtype ->
/// that dtype. Arrays of equal shape have equal specs, else they broadcast. The gradient goes to the chosen case only;
/// the other one gets 0 times its derivative, so keep that finite (as in JAX: where(q > 0, log(where(q > 0, q, 1)),
/// q)). No collective. Source: jax.numpy.where.
template <ArrayLike Predicate, Operand X, Operand Y>
requires(ArrayLike<X> || ArrayLike<Y>) constexpr auto where(const Predicate& predicate, const X& on_true,
                                                            const Y& on_false) {
  return ops::apply<"where", ops::where_rule>(ops::write_where, on_true, on_false, predicate);
}

}  // namespace tessera
