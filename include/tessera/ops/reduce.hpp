// SPDX-License-Identifier: Apache-2.0
// Reductions over any dimensions: sum, mean, max, min.
#pragma once

#include <tessera/ops/apply.hpp>
#include <tessera/ops/elementwise.hpp>

namespace tessera {

/// An argument of reductions: reduced dimensions stay, with extent 1.
struct keepdims_t {};
inline constexpr keepdims_t keepdims{};

namespace ops {

/// The dimensions named, or all of them where none is.
template <int... Dims>
constexpr sharding::dim_set_ruling dims_named(int rank) {
  if constexpr (sizeof...(Dims) == 0) {
    return {sharding::all_dims(rank)};
  } else {
    const int named[] = {Dims...};
    return sharding::named_dims(named, rank);
  }
}

template <op Code, bool Keep, class OutSpec, bool Mean, int... Dims>
inline constexpr auto reduce_rule = [](std::span<const aval> x, const mesh_value& mesh) {
  const sharding::dim_set_ruling dims = dims_named<Dims...>(x[0].rank);
  if (dims.failure != message::none) return refuse(dims.failure);
  if (x[0].type == dtype::bool_) return refuse(message::reduce_needs_number);
  if (Mean && !is_floating(x[0].type)) return refuse(message::reduce_mean_float);
  if ((Mean || Code != op::reduce_sum) && sharding::reduced_size(x[0], dims.dims) == 0)
    return refuse(message::reduce_empty);
  return sharding::reduce(x[0], dims.dims, Keep, chosen_spec<OutSpec>(mesh).get(), mesh);
};

template <op Code, bool Mean, int... Dims>
inline constexpr auto write_reduce = [](const std::array<graph::value, 1>& x, const aval& type) {
  const sharding::dim_set dims = dims_named<Dims...>(x[0].type().rank).dims;
  graph::value reduced = x[0];
  if (dims != 0) {
    reduced = graph::write(x[0].owner, Code, type, {x[0].id});
    reduced.owner->at(reduced.id).attribute[0] = dims;
  }
  if constexpr (Mean) return reduced / static_cast<double>(sharding::reduced_size(x[0].type(), dims));
  else return graph::reshard(reduced, type);
};

template <text Name, op Code, bool Mean, int... Dims>
struct reduction {
  constexpr auto operator()(const ArrayLike auto& x) const {
    return apply<Name, reduce_rule<Code, false, void, Mean, Dims...>>(write_reduce<Code, Mean, Dims...>, x);
  }
  constexpr auto operator()(const ArrayLike auto& x, keepdims_t) const {
    return apply<Name, reduce_rule<Code, true, void, Mean, Dims...>>(write_reduce<Code, Mean, Dims...>, x);
  }
  template <class Spec>
  constexpr auto operator()(const ArrayLike auto& x, out_sharding_t<Spec>) const {
    return apply<Name, reduce_rule<Code, false, Spec, Mean, Dims...>>(write_reduce<Code, Mean, Dims...>, x);
  }
};

}  // namespace ops

/// `sum<0, -1>(x)` reduces the named dimensions, `sum(x)` all of them. Result: the other dimensions as they were cut;
/// with `keepdims` the reduced ones stay with extent 1; with `out_sharding<...>` the cut is chosen. Gradient: repeated
/// along what was reduced. Collectives: an all-reduce (reduce-scatter with out_sharding) over the axes that cut a
/// reduced dimension. Sums are blocked, in an order fixed by sizes. Source: jax.numpy.sum, mean, max, min.
template <int... Dims>
constexpr auto sum(const ArrayLike auto& x, auto... options) {
  return ops::reduction<"sum", graph::op::reduce_sum, false, Dims...>{}(x, options...);
}

/// The sum divided by the number of elements; floating-point only.
template <int... Dims>
constexpr auto mean(const ArrayLike auto& x, auto... options) {
  return ops::reduction<"mean", graph::op::reduce_sum, true, Dims...>{}(x, options...);
}

/// NaN where an element is. The gradient is shared equally by all elements that attain the extremum.
template <int... Dims>
constexpr auto max(const ArrayLike auto& x, auto... options) {
  return ops::reduction<"max", graph::op::reduce_max, false, Dims...>{}(x, options...);
}
template <int... Dims>
constexpr auto min(const ArrayLike auto& x, auto... options) {
  return ops::reduction<"min", graph::op::reduce_min, false, Dims...>{}(x, options...);
}

}  // namespace tessera
