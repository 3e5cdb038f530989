// SPDX-License-Identifier: Apache-2.0
// Order along one dimension.
#pragma once

#include <tessera/graph/along_axis.hpp>
#include <tessera/graph/gather.hpp>
#include <tessera/ops/cumulative.hpp>

#include <limits>
#include <utility>

namespace tessera {

/// An argument of sort and argsort: the largest first.
struct descending_t {};
inline constexpr descending_t descending{};

namespace ops {

/// Count = -1 is all of them.
template <int Axis, std::int64_t Count>
inline constexpr auto argsort_rule = keeps_reduced{[](std::span<const aval> x, const mesh_value&) {
  ruling ruled = whole_axis(x[0], Axis, message::sort_axis, message::sort_cut);
  if (!ruled.ok()) return ruled;
  std::int64_t& extent = ruled.result.dims[Axis < 0 ? Axis + x[0].rank : Axis].extent;
  if (extent > std::numeric_limits<std::int32_t>::max()) return refuse(message::reduce_index);
  if (Count < -1 || Count > extent) return refuse(message::sort_count);
  if (Count >= 0) extent = Count;
  ruled.result.type = dtype::i32;
  return ruled;
}};

template <int Axis, bool Descending>
inline constexpr auto write_argsort = [](const std::array<graph::value, 1>& x, const aval& type) {
  const int axis = Axis < 0 ? Axis + type.rank : Axis;
  const graph::value plain = graph::unary(op::stop_gradient, as_number(x[0]));
  return graph::argsort(plain, axis, type.dims[axis].extent, Descending);
};

}  // namespace ops

/// `argsort<0>(x)`: int32, the positions of the elements along a dimension (the last unless told) in ascending order,
/// or with `descending` the largest first. The dimension must be uncut; the others keep their cuts. Equal elements keep
/// their order, NaN counts as largest. No gradient. No collective. Source: jax.numpy.argsort, stable.
template <int Axis = -1>
constexpr auto argsort(const ArrayLike auto& x) {
  return ops::apply<"argsort", ops::argsort_rule<Axis, -1>>(ops::write_argsort<Axis, false>, x);
}
template <int Axis = -1>
constexpr auto argsort(const ArrayLike auto& x, descending_t) {
  return ops::apply<"argsort", ops::argsort_rule<Axis, -1>>(ops::write_argsort<Axis, true>, x);
}

namespace ops {

/// The elements of x along a dimension at the places that `order` names; each in range, so nothing is checked.
constexpr graph::value in_order(graph::value x, graph::value order, int axis) {
  sharding::indexing how;
  how.axis = axis;
  how.pointwise = true;
  aval type = x.type();
  type.dims[axis].extent = order.type().dims[axis].extent;
  return graph::gather(x, order, how, type);
}

template <int Axis, std::int64_t Count>
inline constexpr auto sort_rule = keeps_reduced{[](std::span<const aval> x, const mesh_value& mesh) {
  ruling ruled = argsort_rule<Axis, Count>(x, mesh);
  ruled.result.type = x[0].type;
  return ruled;
}};

template <int Axis, bool Descending>
inline constexpr auto write_sort = [](const std::array<graph::value, 1>& x, const aval& type) {
  return in_order(x[0], write_argsort<Axis, Descending>(x, type), Axis < 0 ? Axis + type.rank : Axis);
};

}  // namespace ops

/// `sort<0>(x)`: the elements along a dimension in the order that `argsort` gives. Same extents and cuts. Gradient:
/// each element's goes back to where it stood. Saved for it: the order. Source: jax.numpy.sort.
template <int Axis = -1>
constexpr auto sort(const ArrayLike auto& x) {
  return ops::apply<"sort", ops::sort_rule<Axis, -1>>(ops::write_sort<Axis, false>, x);
}
template <int Axis = -1>
constexpr auto sort(const ArrayLike auto& x, descending_t) {
  return ops::apply<"sort", ops::sort_rule<Axis, -1>>(ops::write_sort<Axis, true>, x);
}

/// `auto [values, indices] = top_k<3>(x)`: the K largest elements along a dimension (the last unless told), the largest
/// first, and where they stand, int32; of equal ones the first. The dimension must be uncut and have K elements.
/// Gradient: to the elements that were chosen. Source: jax.lax.top_k.
template <std::int64_t K, int Axis = -1>
constexpr auto top_k(const ArrayLike auto& x) {
  return std::pair(ops::apply<"top_k", ops::sort_rule<Axis, K>>(ops::write_sort<Axis, true>, x),
                   ops::apply<"top_k", ops::argsort_rule<Axis, K>>(ops::write_argsort<Axis, true>, x));
}

}  // namespace tessera
