// SPDX-License-Identifier: Apache-2.0
// Where the largest and the smallest elements stand.
#pragma once

#include <tessera/graph/position.hpp>
#include <tessera/ops/reduction.hpp>

#include <limits>

namespace tessera {

namespace ops {

template <op Code>
struct position_kind {
  static constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();

  static constexpr message fault(const aval& x, sharding::dim_set dims) {
    if (const message why = fault_if_empty(x, dims); why != message::none) return why;
    return sharding::reduced_size(x, dims) > largest ? message::reduce_index : message::none;
  }
  static constexpr dtype element(dtype) { return dtype::i32; }
  /// The least position whose element is the extremum, or NaN where one is: NaN is then the extremum itself.
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    x = graph::unary(op::stop_gradient, as_number(x));
    const graph::value best = graph::reduce(Code, x, dims, true);
    graph::value attained = graph::binary(op::eq, x, best);
    if (is_floating(x.type().type)) attained = graph::binary(op::logical_or, attained, graph::binary(op::ne, x, x));
    const graph::value place = graph::row_major_position(x.owner, x.type(), dims, dtype::i32);
    const graph::value candidate =
        graph::select(attained, place, graph::number_like(place, static_cast<double>(largest)));
    return graph::reduce(op::reduce_min, candidate, dims, keep, spec);
  }
};

}  // namespace ops

/// `argmax<1>(x)`: the position along a dimension of the largest element; without a dimension its row-major number in
/// the whole array. int32, the other dimensions cut as they were; keepdims and out_sharding as in `sum`. The first of
/// equal ones; NaN counts as largest (smallest). No gradient. Collectives: two all-reduces where a reduced dimension is
/// cut. Source: jax.numpy.argmax, argmin.
template <int... Axis>
requires(sizeof...(Axis) <= 1) constexpr auto argmax(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"argmax", ops::position_kind<graph::op::reduce_max>, Axis...>{}(x, options...);
}
template <int... Axis>
requires(sizeof...(Axis) <= 1) constexpr auto argmin(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"argmin", ops::position_kind<graph::op::reduce_min>, Axis...>{}(x, options...);
}

}  // namespace tessera
