// SPDX-License-Identifier: Apache-2.0
// Operations on dimensions as such: expand_dims, squeeze, moveaxis, swapaxes.
#pragma once

#include <tessera/ops/apply.hpp>
#include <tessera/sharding/reduce.hpp>
#include <tessera/sharding/slice.hpp>

namespace tessera {

namespace ops {

/// Named dimensions as a set, or the message that one of them is not there or named twice.
template <int... Dims>
constexpr sharding::dim_set_ruling dims_of(int rank) {
  sharding::dim_set_ruling named{};
  [[maybe_unused]] const auto add = [&](int d) {
    const int place = sharding::place_of(d, rank);
    if (named.failure != message::none) return;
    if (place < 0) named.failure = message::shape_no_dimension;
    else if (named.dims & (1U << place)) named.failure = message::shape_dimension_twice;
    else named.dims |= 1U << place;
  };
  (add(Dims), ...);
  return named;
}

template <int... Dims>
inline constexpr auto expand_rule = [](std::span<const aval> x, const mesh_value&) {
  const int rank = x[0].rank + static_cast<int>(sizeof...(Dims));
  if (rank > max_rank) return refuse(message::shape_rank);
  const sharding::dim_set_ruling added = dims_of<Dims...>(rank);
  if (added.failure != message::none) return refuse(added.failure);
  aval result = scalar_aval(x[0].type);
  result.rank = rank;
  int from = 0;
  for (int d = 0; d < rank; ++d) result.dims[d] = added.dims & (1U << d) ? dim{1, 0} : x[0].dims[from++];
  return ruling{result};
};

template <int... Dims>
inline constexpr auto squeeze_rule = [](std::span<const aval> x, const mesh_value&) {
  sharding::dim_set_ruling dropped = dims_of<Dims...>(x[0].rank);
  if (dropped.failure != message::none) return refuse(dropped.failure);
  aval result = scalar_aval(x[0].type);
  for (int d = 0; d < x[0].rank; ++d) {
    const bool one = x[0].dims[d].extent == 1;
    const bool named = sizeof...(Dims) == 0 ? one : (dropped.dims & (1U << d)) != 0;
    if (named && !one) return refuse(message::squeeze_extent, d);
    if (!named) result.dims[result.rank++] = x[0].dims[d];
  }
  return ruling{result};
};

/// The order of dimensions after the one at `from` went to `to`.
constexpr sharding::dim_list moved(int rank, int from, int to) {
  sharding::dim_list order = 0;
  for (int i = 0, next = 0; i < rank; ++i) {
    if (next == from) ++next;
    order = sharding::dim_append(order, i == to ? from : next++);
  }
  return order;
}

constexpr sharding::dim_list swapped(int rank, int a, int b) {
  sharding::dim_list order = 0;
  for (int i = 0; i < rank; ++i) order = sharding::dim_append(order, i == a ? b : i == b ? a : i);
  return order;
}

/// The rule and the node of a permutation that `Order(rank, a, b)` gives.
template <auto Order, int A, int B>
inline constexpr auto permute_rule = [](std::span<const aval> x, const mesh_value&) {
  const int a = sharding::place_of(A, x[0].rank);
  const int b = sharding::place_of(B, x[0].rank);
  if (a < 0 || b < 0) return refuse(message::shape_no_dimension);
  return sharding::transpose(x[0], Order(x[0].rank, a, b));
};
template <auto Order, int A, int B>
inline constexpr auto write_permute = [](const std::array<graph::value, 1>& x, const aval& type) {
  return graph::transpose(x[0], Order(type.rank, sharding::place_of(A, type.rank), sharding::place_of(B, type.rank)));
};

inline constexpr auto write_reshaped = [](const std::array<graph::value, 1>& x, const aval& type) {
  return graph::reshape(x[0], type);
};

}  // namespace ops

/// `expand_dims<0, -1>(x)`: x with dimensions of extent 1, uncut, at these places of the result. Gradient: squeeze.
/// No element moves and no collective is needed here and below. Source: jax.numpy.expand_dims, squeeze, moveaxis,
/// swapaxes.
template <int... Dims>
constexpr auto expand_dims(const ArrayLike auto& x) {
  return ops::apply<"expand_dims", ops::expand_rule<Dims...>>(ops::write_reshaped, x);
}

/// `squeeze<0>(x)`: x without these dimensions, all of extent 1; `squeeze(x)` drops every dimension of extent 1.
template <int... Dims>
constexpr auto squeeze(const ArrayLike auto& x) {
  return ops::apply<"squeeze", ops::squeeze_rule<Dims...>>(ops::write_reshaped, x);
}

/// `moveaxis<0, -1>(x)`: dimension From goes to place To, the others keep their order; cuts go along.
template <int From, int To>
constexpr auto moveaxis(const ArrayLike auto& x) {
  return ops::apply<"moveaxis", ops::permute_rule<&ops::moved, From, To>>(ops::write_permute<&ops::moved, From, To>, x);
}

/// `swapaxes<0, 1>(x)`: two dimensions change places.
template <int A, int B>
constexpr auto swapaxes(const ArrayLike auto& x) {
  return ops::apply<"swapaxes", ops::permute_rule<&ops::swapped, A, B>>(ops::write_permute<&ops::swapped, A, B>, x);
}

}  // namespace tessera
