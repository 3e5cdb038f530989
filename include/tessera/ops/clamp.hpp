// SPDX-License-Identifier: Apache-2.0
// Keeping elements within bounds.
#pragma once

#include <tessera/ops/elementwise.hpp>

namespace tessera {

namespace ops {

/// The type of x, whatever the bounds are; each of them is a scalar or has x's shape, and is uncut or cut as x.
inline constexpr auto clamp_rule = keeps_reduced{[](std::span<const aval> x, const mesh_value&) {
  if (x[1].type == dtype::bool_) return refuse(message::elementwise_needs_number);
  for (const aval& bound : {x[0], x[2]}) {
    if (bound.type != x[1].type) return refuse(message::elementwise_dtype);
    if (bound.rank == 0) continue;
    if (!bound.same_shape(x[1])) return refuse(message::elementwise_shape);
    for (int d = 0; d < bound.rank; ++d)
      if (bound.dims[d].axes != 0 && bound.dims[d].axes != x[1].dims[d].axes)
        return refuse(message::elementwise_sharding, d);
  }
  return ruling{x[1]};
}};

/// NaN stays; what is no less than `lo` and no more than `hi` passes with its gradient, the ends included.
constexpr graph::value clamped(graph::value lo, graph::value x, graph::value hi) {
  const graph::value above = graph::select(graph::binary(op::lt, x, lo), lo, x);
  return graph::select(graph::binary(op::gt, above, hi), hi, above);
}

inline constexpr auto write_clamp = [](const std::array<graph::value, 3>& x, const aval&) {
  return clamped(x[0], x[1], x[2]);
};

}  // namespace ops

/// `clamp(lo, x, hi)`: x, or the bound beyond which it lies; hi where lo > hi; NaN stays. The result has x's type;
/// bounds are scalars or of x's shape. Gradient: to x within the bounds, to the bound outside. Source: jax.lax.clamp.
template <Operand Low, ArrayLike X, Operand High>
constexpr auto clamp(const Low& lo, const X& x, const High& hi) {
  return ops::apply<"clamp", ops::clamp_rule>(ops::write_clamp, lo, x, hi);
}

/// `clip(x, lo, hi)`: the same with its operands in NumPy's order. Source: jax.numpy.clip.
template <ArrayLike X, Operand Low, Operand High>
constexpr auto clip(const X& x, const Low& lo, const High& hi) {
  return ops::apply<"clip", ops::clamp_rule>(ops::write_clamp, lo, x, hi);
}

}  // namespace tessera
