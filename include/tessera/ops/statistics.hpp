// SPDX-License-Identifier: Apache-2.0
// Reductions made of several steps: variance, standard deviation, norm, log of a sum of exponentials.
#pragma once

#include <tessera/ops/reduce.hpp>

#include <limits>

namespace tessera {

/// An argument of var and std: the squared deviations are divided by n - N.
template <int N>
struct ddof_t {};
template <int N>
inline constexpr ddof_t<N> ddof{};

namespace ops {

/// sqrt(x) whose derivative at 0 is 0.
constexpr graph::value root_flat_at_zero(graph::value x) {
  const graph::value zero = graph::number_like(x, 0);
  const graph::value flat = graph::binary(op::eq, x, zero);
  return graph::select(flat, zero, graph::unary(op::sqrt, graph::select(flat, graph::number_like(x, 1), x)));
}

template <int Ddof, bool Root>
struct variance_kind {
  static constexpr message fault(const aval& x, sharding::dim_set dims) {
    if (const message why = fault_unless_float(x); why != message::none) return why;
    if (const message why = fault_if_empty(x, dims); why != message::none) return why;
    return sharding::reduced_size(x, dims) <= Ddof ? message::reduce_ddof : message::none;
  }
  static constexpr dtype element(dtype d) { return d; }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    const auto n = static_cast<double>(sharding::reduced_size(x.type(), dims));
    const graph::value centre = graph::reduce(op::reduce_sum, x, dims, true) / n;
    const graph::value squares = graph::unary(op::square, x - centre);
    const graph::value variance = graph::reduce(op::reduce_sum, squares, dims, keep, spec) / (n - Ddof);
    return Root ? root_flat_at_zero(variance) : variance;
  }
};

struct norm_kind {
  static constexpr message fault(const aval& x, sharding::dim_set) { return fault_unless_float(x); }
  static constexpr dtype element(dtype d) { return d; }
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    return root_flat_at_zero(graph::reduce(op::reduce_sum, graph::unary(op::square, x), dims, keep, spec));
  }
};

struct logsumexp_kind {
  static constexpr message fault(const aval& x, sharding::dim_set dims) {
    if (const message why = fault_unless_float(x); why != message::none) return why;
    return fault_if_empty(x, dims);
  }
  static constexpr dtype element(dtype d) { return d; }
  /// The maximum carries no gradient: it cancels. It is left out where it is infinite, and what is nothing but
  /// -infinity is told apart, so that neither gives NaN.
  static constexpr graph::value write(graph::value x, sharding::dim_set dims, bool keep, const spec_value* spec) {
    const graph::value zero = graph::number_like(x, 0);
    const graph::value infinity = graph::number_like(x, std::numeric_limits<double>::infinity());
    const graph::value top = graph::unary(op::stop_gradient, graph::reduce(op::reduce_max, x, dims, true));
    const graph::value endless = graph::binary(op::eq, graph::unary(op::abs, top), infinity);
    const graph::value shift = graph::select(endless, zero, top);
    const graph::value powers = graph::unary(op::exp, x - shift);
    const graph::value total = graph::reduce(op::reduce_sum, powers, dims, keep, spec);
    const aval squeezed = graph::expect(sharding::reduce(shift.type(), dims, keep, nullptr, x.mesh()));
    const graph::value added = graph::reshard(graph::reshape(shift, squeezed), total.type());
    const graph::value nothing = graph::binary(op::eq, total, zero);
    const graph::value logarithm =
        graph::unary(op::log, graph::select(nothing, graph::number_like(x, 1), total)) + added;
    return graph::select(nothing, -infinity, logarithm);
  }
};

}  // namespace ops

/// `var<0>(x)`: the mean of (x - mean(x))^2 over the named dimensions, or all; `var<0>(x, ddof<1>)` divides by n - 1.
/// Floating-point only; two passes, so never negative. Dimensions, keepdims, out_sharding as in `sum`. Gradient
/// 2 (x - mean) / (n - ddof). Saved for it: x. Collectives: two all-reduces where a reduced dimension is cut.
/// Source: jax.numpy.var.
template <int... Dims>
constexpr auto var(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"var", ops::variance_kind<0, false>, Dims...>{}(x, options...);
}
template <int... Dims, int N>
constexpr auto var(const ArrayLike auto& x, ddof_t<N>, ops::ReduceOption auto... options) {
  return ops::reduction<"var", ops::variance_kind<N, false>, Dims...>{}(x, options...);
}

/// The square root of `var`, whose gradient is 0 where the variance is 0. Source: jax.numpy.std.
template <int... Dims>
constexpr auto std(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"std", ops::variance_kind<0, true>, Dims...>{}(x, options...);
}
template <int... Dims, int N>
constexpr auto std(const ArrayLike auto& x, ddof_t<N>, ops::ReduceOption auto... options) {
  return ops::reduction<"std", ops::variance_kind<N, true>, Dims...>{}(x, options...);
}

/// sqrt(sum(x^2)) over the named dimensions, or all. Gradient x / norm, and 0 where the norm is 0. Dimensions, options
/// and collectives as in `sum`. Source: jax.numpy.linalg.norm.
template <int... Dims>
constexpr auto norm(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"norm", ops::norm_kind, Dims...>{}(x, options...);
}

/// log(sum(exp(x))), shifted by the maximum so that nothing overflows; -inf where all elements are -inf, and then the
/// gradient is 0. Gradient exp(x - logsumexp(x)). Dimensions and options as in `sum`. Collectives: two all-reduces
/// (maximum, sum) where a reduced dimension is cut. Source: jax.nn.logsumexp.
template <int... Dims>
constexpr auto logsumexp(const ArrayLike auto& x, ops::ReduceOption auto... options) {
  return ops::reduction<"logsumexp", ops::logsumexp_kind, Dims...>{}(x, options...);
}

}  // namespace tessera
