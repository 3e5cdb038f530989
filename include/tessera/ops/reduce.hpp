// SPDX-License-Identifier: Apache-2.0
// Reductions over any dimensions: sum, prod, mean, max, min, all, any, count_nonzero.
#pragma once

#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/reduction.hpp>

namespace tessera {

namespace ops {

/// Sums and products: those of nothing are 0 and 1, bool counts as int32.
template <op Code>
struct total_kind {
  static constexpr combine pending = graph::combine_of(Code);
  static constexpr message fault(const aval&, sharding::dim_set) { return message::none; }
  static constexpr dtype element(dtype d) { return number_element(d); }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    return graph::reduce(Code, as_number(x), dims, keep, spec);
  }
};

struct mean_kind {
  static constexpr message fault(const aval& x, sharding::dim_set dims) {
    if (x.type != dtype::bool_ && !is_floating(x.type)) return message::reduce_mean_float;
    return fault_if_empty(x, dims);
  }
  static constexpr dtype element(dtype d) { return d == dtype::bool_ ? dtype::f32 : d; }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    const graph::value total =
        graph::reduce(op::reduce_sum, graph::convert(x, element(x.type().type)), dims, keep, spec);
    return total / static_cast<double>(sharding::reduced_size(x.type(), dims));
  }
};

template <op Code>
struct extremum_kind {
  static constexpr combine pending = graph::combine_of(Code);
  static constexpr message fault(const aval& x, sharding::dim_set dims) { return fault_if_empty(x, dims); }
  static constexpr dtype element(dtype d) { return d; }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    return graph::reduce(Code, x, dims, keep, spec);
  }
};

constexpr graph::value is_nonzero(graph::value x) {
  return x.type().type == dtype::bool_ ? x : graph::binary(op::ne, x, graph::number_like(x, 0));
}

/// all is the minimum of bool, any the maximum.
template <op Code>
struct logic_kind {
  static constexpr message fault(const aval&, sharding::dim_set) { return message::none; }
  static constexpr dtype element(dtype) { return dtype::bool_; }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    return graph::reduce(Code, is_nonzero(x), dims, keep, spec);
  }
};

struct count_kind {
  static constexpr message fault(const aval&, sharding::dim_set) { return message::none; }
  static constexpr dtype element(dtype) { return dtype::i32; }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    return graph::reduce(op::reduce_sum, graph::convert(is_nonzero(x), dtype::i32), dims, keep, spec);
  }
};

}  // namespace ops

/// `sum<0, -1>(x)` reduces the named dimensions, `sum(x)` all of them. Result: the other dimensions as they were cut;
/// with `keepdims` the reduced ones stay with extent 1; with `out_sharding<...>` the cut is chosen, and the sum over an
/// axis that cuts a reduced dimension may be left pending (`unreduced<...>`; of max and min `unreduced_max<...>`,
/// `unreduced_min<...>`). What is pending in x stays so. Sums of bool are int32. Gradient: repeated along what was
/// reduced. Collectives: an all-reduce (reduce-scatter with out_sharding) over the axes that cut a reduced dimension.
/// Sums are blocked, in an order fixed by sizes. Source: jax.numpy.sum, prod, mean, max, min, all, any, count_nonzero.
template <int... Dims>
constexpr auto sum(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"sum", ops::total_kind<graph::op::reduce_sum>, Dims...>{}(x, options...);
}

/// The product, that of no elements is 1. The gradient of an element is the product of the others, also where one or
/// more are 0.
template <int... Dims>
constexpr auto prod(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"prod", ops::total_kind<graph::op::reduce_prod>, Dims...>{}(x, options...);
}

/// The sum divided by the number of elements; of floating-point numbers, or of bool as float32.
template <int... Dims>
constexpr auto mean(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"mean", ops::mean_kind, Dims...>{}(x, options...);
}

/// NaN where an element is. The gradient is shared equally by all elements that attain the extremum.
template <int... Dims>
constexpr auto max(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"max", ops::extremum_kind<graph::op::reduce_max>, Dims...>{}(x, options...);
}
template <int... Dims>
constexpr auto min(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"min", ops::extremum_kind<graph::op::reduce_min>, Dims...>{}(x, options...);
}

/// Whether all, or any, elements are true, or not 0 (NaN is not): bool. Of no elements: true, and false.
template <int... Dims>
constexpr auto all(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"all", ops::logic_kind<graph::op::reduce_min>, Dims...>{}(x, options...);
}
template <int... Dims>
constexpr auto any(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"any", ops::logic_kind<graph::op::reduce_max>, Dims...>{}(x, options...);
}

/// How many elements are true, or not 0: int32.
template <int... Dims>
constexpr auto count_nonzero(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"count_nonzero", ops::count_kind, Dims...>{}(x, options...);
}

}  // namespace tessera
