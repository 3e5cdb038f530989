// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax along one dimension.
#pragma once

#include <tessera/ops/apply.hpp>

#include <limits>

namespace tessera {

namespace ops {

template <int Axis>
inline constexpr auto softmax_rule = keeps_reduced{[](std::span<const aval> x, const mesh_value&) {
  if (!is_floating(x[0].type)) return refuse(message::softmax_needs_float);
  const int place = Axis < 0 ? Axis + x[0].rank : Axis;
  if (place < 0 || place >= x[0].rank) return refuse(message::softmax_axis);
  return ruling{x[0]};
}};

/// From reductions and elementwise steps, for a dimension that is cut or not the last. The maximum carries no gradient:
/// it cancels. Rows of nothing but -infinity are told apart, as the kernel for whole rows does, so that none gives NaN.
constexpr graph::value softmax_in_steps(graph::value x, int axis, bool logarithm) {
  if (const dtype own = x.type().type; is_sixteen_bit(own))
    return graph::convert(softmax_in_steps(graph::convert(x, accumulator(own)), axis, logarithm), own);
  const sharding::dim_set dims = 1U << axis;
  const graph::value nothing = graph::number_like(x, -std::numeric_limits<double>::infinity());
  const graph::value top = graph::unary(op::stop_gradient, graph::reduce(op::reduce_max, x, dims, true));
  const graph::value masked = graph::binary(op::eq, top, nothing);
  const graph::value shifted = x - graph::select(masked, graph::number_like(x, 0), top);
  const graph::value powers = graph::unary(op::exp, shifted);
  const graph::value sum = graph::reduce(op::reduce_sum, powers, dims, true);
  const graph::value total = graph::select(masked, graph::number_like(x, 1), sum);
  return logarithm ? graph::select(masked, nothing, shifted - graph::unary(op::log, total)) : powers / total;
}

template <op Code, int Axis>
inline constexpr auto write_softmax = [](const std::array<graph::value, 1>& x, const aval& type) {
  const int axis = Axis < 0 ? Axis + type.rank : Axis;
  if (axis == type.rank - 1 && type.dims[axis].axes == 0) return graph::write(x[0].owner, Code, type, {x[0].id});
  return softmax_in_steps(x[0], axis, Code == op::log_softmax);
};

}  // namespace ops

/// exp(x) / sum(exp(x)) along a dimension (the last unless told), shifted by the maximum; same type as x. A row of -inf
/// gives zeros. Gradient y (u - sum(u y)); saved for it: the result. Collectives: none, or two all-reduces (maximum,
/// sum) when the dimension is cut. Source: jax.nn.softmax.
template <int Axis = -1>
constexpr auto softmax(const ArrayLike auto& x, call_site where = call_site::current()) {
  return ops::apply<"softmax", ops::softmax_rule<Axis>>(
      ops::written_at{where, ops::write_softmax<graph::op::softmax, Axis>}, x);
}

/// x - log(sum(exp(x))) along a dimension; a row of -inf gives -inf and no gradient. As softmax otherwise. Source:
/// jax.nn.log_softmax.
template <int Axis = -1>
constexpr auto log_softmax(const ArrayLike auto& x, call_site where = call_site::current()) {
  return ops::apply<"log_softmax", ops::softmax_rule<Axis>>(
      ops::written_at{where, ops::write_softmax<graph::op::log_softmax, Axis>}, x);
}

}  // namespace tessera
