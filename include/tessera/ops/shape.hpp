// SPDX-License-Identifier: Apache-2.0
// Operations that keep every value and change where it stands: reshape, transpose, broadcast_to.
#pragma once

#include <tessera/ops/apply.hpp>

namespace tessera {

namespace ops {

template <std::int64_t... Extents>
constexpr aval target_shape() {
  return plain_aval<dtype::f32, shape<Extents...>>();
}

/// A refused ruling names the extents that were asked for.
constexpr ruling with_target(ruling ruled, aval target, const aval& operand) {
  target.type = operand.type;
  if (!ruled.ok()) ruled.result = target;
  return ruled;
}

template <class OutSpec, std::int64_t... Extents>
inline constexpr auto reshape_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  if (sizeof...(Extents) > max_rank) return refuse(message::shape_rank);
  return with_target(sharding::reshape(x[0], target_shape<Extents...>(), chosen_spec<OutSpec>(mesh).get(), mesh),
                     target_shape<Extents...>(), x[0]);
}};

/// A reshape that also changes how the array is cut goes over the uncut array.
inline constexpr auto write_reshape = [](const std::array<graph::value, 1>& x, const aval& type) {
  const ruling natural = sharding::reshape(x[0].type(), type, nullptr, x[0].mesh());
  if (natural.ok()) return graph::reshard(graph::reshape(x[0], natural.result), type);
  aval whole = x[0].type();
  aval whole_target = type;
  for (int i = 0; i < whole.rank; ++i) whole.dims[i].axes = 0;
  for (int i = 0; i < type.rank; ++i) whole_target.dims[i].axes = 0;
  return graph::reshard(graph::reshape(graph::reshard(x[0], whole), whole_target), type);
};

template <int... Places>
constexpr sharding::dim_list permutation_of(int rank) {
  sharding::dim_list list = 0;
  if constexpr (sizeof...(Places) == 0) {
    for (int i = rank - 1; i >= 0; --i) list = sharding::dim_append(list, i);
  } else {
    ((list = sharding::dim_append(list, Places < 0 ? Places + rank : Places)), ...);
  }
  return list;
}

template <int... Places>
inline constexpr auto transpose_rule = handles_marks{[](std::span<const aval> x, const mesh_value&) {
  for (int place : {0, Places...})
    if (place >= x[0].rank + (x[0].rank == 0) || place < -x[0].rank) return refuse(message::transpose_permutation);
  if (sizeof...(Places) != 0 && static_cast<int>(sizeof...(Places)) != x[0].rank)
    return refuse(message::transpose_permutation);
  return sharding::transpose(x[0], permutation_of<Places...>(x[0].rank));
}};

template <class OutSpec, std::int64_t... Extents>
inline constexpr auto broadcast_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  if (sizeof...(Extents) > max_rank) return refuse(message::shape_rank);
  return with_target(sharding::broadcast_to(x[0], target_shape<Extents...>(), chosen_spec<OutSpec>(mesh).get(), mesh),
                     target_shape<Extents...>(), x[0]);
}};

inline constexpr auto write_broadcast = [](const std::array<graph::value, 1>& x, const aval& type) {
  const int rank = x[0].type().rank;
  return graph::broadcast(x[0], type, graph::dims_in_order(rank, type.rank - rank));
};

}  // namespace ops

/// `reshape<32, 64>(x)`: the same elements in row-major order under new extents. Cuts follow dimensions of extent 1
/// that come or go, one split and one merge that leave every block where it is; anything else does not compile unless
/// `out_sharding<...>` is given, which moves what must move. Gradient: reshape back. Source: jax.numpy.reshape.
template <std::int64_t... Extents>
constexpr auto reshape(const ArrayLike auto& x) {
  return ops::apply<"reshape", ops::reshape_rule<void, Extents...>>(ops::write_reshape, x);
}
template <std::int64_t... Extents, class Spec>
constexpr auto reshape(const ArrayLike auto& x, out_sharding_t<Spec>) {
  return ops::apply<"reshape", ops::reshape_rule<Spec, Extents...>>(ops::write_reshape, x);
}

/// `transpose<2, 0, 1>(x)`: result dimension i is x's dimension Places[i], cut as it was; without numbers the order is
/// reversed. Gradient: the inverse permutation. No collective. Source: jax.numpy.transpose.
template <int... Places>
constexpr auto transpose(const ArrayLike auto& x) {
  return ops::apply<"transpose", ops::transpose_rule<Places...>>(
      [](const std::array<graph::value, 1>& v, const aval&) {
        return graph::transpose(v[0], ops::permutation_of<Places...>(v[0].type().rank));
      },
      x);
}

/// `broadcast_to<32, 64>(x)`: x repeated along new leading dimensions and along those of extent 1. Mapped dimensions
/// keep their cut, others are uncut unless `out_sharding<...>` says so. Gradient: the sum over what was repeated.
template <std::int64_t... Extents>
constexpr auto broadcast_to(const ArrayLike auto& x) {
  return ops::apply<"broadcast_to", ops::broadcast_rule<void, Extents...>>(ops::write_broadcast, x);
}
template <std::int64_t... Extents, class Spec>
constexpr auto broadcast_to(const ArrayLike auto& x, out_sharding_t<Spec>) {
  return ops::apply<"broadcast_to", ops::broadcast_rule<Spec, Extents...>>(ops::write_broadcast, x);
}

}  // namespace tessera
