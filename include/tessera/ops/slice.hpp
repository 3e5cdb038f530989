// SPDX-License-Identifier: Apache-2.0
// Static parts of arrays: slice, flip, split.
#pragma once

#include <tessera/graph/layout.hpp>
#include <tessera/ops/dims.hpp>
#include <tessera/ops/options.hpp>

#include <concepts>
#include <tuple>

namespace tessera {

/// Where a range starts or ends: a position, negative ones counted from the end, or `none`, as far as it goes.
struct range_end {
  std::int64_t at = 0;
  bool given = false;

  constexpr range_end() = default;
  constexpr range_end(none_t) {}
  constexpr range_end(std::integral auto position) : at(position), given(true) {}
};

/// Elements start, start + stride, ... before limit: `range{1, -1}`, `range{none, 4}`, `range{none, none, -1}`.
struct range {
  range_end start{};
  range_end limit{};
  std::int64_t stride = 1;
};

/// What stands for one dimension in a slice: a range, `none` for all of it, or a position, whose dimension vanishes.
struct slice_entry {
  range taken{};
  bool one = false;

  constexpr slice_entry(range part) : taken(part) {}
  constexpr slice_entry(none_t) {}
  constexpr slice_entry(std::integral auto position) : taken{position}, one(true) {}
};

namespace ops {

/// What a user wrote, for extents that are known.
struct slice_plan {
  sharding::slices taken{};
  sharding::dim_set dropped = 0;
  message failure = message::none;
  int dimension = -1;
};

/// One entry on a dimension of this extent; a count of -1 says that it leaves the dimension.
constexpr sharding::dim_slice resolve_range(const slice_entry& entry, std::int64_t extent) {
  const auto [start, limit, stride] = entry.taken;
  const auto place = [&](const range_end& end, std::int64_t otherwise) {
    return !end.given ? otherwise : end.at < 0 ? end.at + extent : end.at;
  };
  const std::int64_t first = place(start, stride > 0 ? 0 : extent - 1);
  if (entry.one) return {first, first < 0 || first >= extent ? -1 : 1, 1};
  const std::int64_t end = place(limit, stride > 0 ? extent : -1);
  if (stride > 0) {
    if (first < 0 || end < 0 || first > extent || end > extent) return {0, -1, 1};
    return {first, end > first ? (end - first + stride - 1) / stride : 0, stride};
  }
  if (first < -1 || end < -1 || first >= extent || end >= extent) return {0, -1, 1};
  return {first < 0 ? 0 : first, first > end ? (first - end - stride - 1) / -stride : 0, stride};
}

template <slice_entry... Entries>
constexpr slice_plan plan_slices(const aval& x) {
  slice_plan plan{sharding::everything(x)};
  if (static_cast<int>(sizeof...(Entries)) > x.rank) plan.failure = message::slice_entries;
  int d = 0;
  [[maybe_unused]] const auto add = [&](const slice_entry& entry) {
    if (plan.failure != message::none) return;
    sharding::dim_slice& part = plan.taken.of[d];
    if (entry.taken.stride == 0) plan.failure = message::slice_stride;
    else if (part = resolve_range(entry, x.dims[d].extent); part.count < 0) plan.failure = message::slice_index;
    if (plan.failure != message::none) plan.dimension = d;
    if (part.count <= 1) part.stride = 1;
    if (entry.one) plan.dropped |= 1U << d;
    ++d;
  };
  (add(Entries), ...);
  return plan;
}

/// Dimensions backwards, all of them where none is named.
template <int... Dims>
constexpr slice_plan plan_flip(const aval& x) {
  slice_plan plan{sharding::everything(x)};
  const sharding::dim_set_ruling named = dims_of<Dims...>(x.rank);
  plan.failure = named.failure;
  for (int d = 0; d < x.rank && plan.failure == message::none; ++d)
    if ((sizeof...(Dims) == 0 || named.dims & (1U << d)) && x.dims[d].extent > 1)
      plan.taken.of[d] = {x.dims[d].extent - 1, x.dims[d].extent, -1};
  return plan;
}

/// The rule and the node of what `Plan(type)` takes of an array.
template <auto Plan, class OutSpec>
inline constexpr auto slice_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const slice_plan plan = Plan(x[0]);
  if (plan.failure != message::none) return refuse(plan.failure, plan.dimension);
  return sharding::slice(x[0], plan.taken, plan.dropped, chosen_spec<OutSpec>(mesh).get(), mesh);
}};

/// Of dimensions that are left the whole is cut as the part will be, unless part of it is taken.
constexpr graph::value write_slices(graph::value x, const slice_plan& plan, const aval& type) {
  aval from = x.type();
  aval kept = from;
  int next = 0;
  for (int d = 0; d < from.rank; ++d) {
    const bool whole = plan.taken.of[d].is_all_of(from.dims[d].extent);
    const bool dropped = plan.dropped & (1U << d);
    from.dims[d].axes = whole && !dropped ? type.dims[next].axes : 0;
    kept.dims[d] = {plan.taken.of[d].count, from.dims[d].axes};
    next += !dropped;
  }
  aval natural = type;
  next = 0;
  for (int d = 0; d < from.rank; ++d)
    if (!(plan.dropped & (1U << d))) natural.dims[next++].axes = kept.dims[d].axes;
  return graph::reshard(graph::reshape(graph::slice(graph::reshard(x, from), plan.taken), natural), type);
}
template <auto Plan>
inline constexpr auto write_slice =
    [](const std::array<graph::value, 1>& x, const aval& type) { return write_slices(x[0], Plan(x[0].type()), type); };

template <text Name, auto Plan>
struct slicing {
  template <ArrayLike X, class... Options>
  constexpr auto operator()(const X& x, Options...) const {
    return apply<Name, slice_rule<Plan, typename spec_among<Options...>::type>>(write_slice<Plan>, x);
  }
};

/// The parts of a split: one number of equal sections, or all sizes.
template <std::int64_t... Parts>
constexpr std::size_t split_count() {
  constexpr std::int64_t parts[] = {Parts...};
  return sizeof...(Parts) == 1 ? static_cast<std::size_t>(parts[0] > 0 ? parts[0] : 0) : sizeof...(Parts);
}

/// Part number I; of a split that is wrong, what is wrong.
template <int Axis, std::size_t I, std::int64_t... Parts>
constexpr slice_plan plan_split(const aval& x) {
  constexpr std::int64_t parts[] = {Parts...};
  constexpr auto count = static_cast<std::int64_t>(split_count<Parts...>());
  slice_plan plan{sharding::everything(x)};
  const int d = sharding::place_of(Axis, x.rank);
  if (d < 0) return {{}, 0, message::shape_no_dimension};
  const std::int64_t extent = x.dims[d].extent;
  if constexpr (sizeof...(Parts) == 1) {
    if (count == 0 || extent % count != 0) return {{}, 0, message::split_sections, d};
    plan.taken.of[d] = {static_cast<std::int64_t>(I) * (extent / count), extent / count, 1};
  } else {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < sizeof...(Parts); ++i) {
      if (parts[i] < 0) return {{}, 0, message::split_sizes, d};
      if (i == I) plan.taken.of[d] = {total, parts[i], 1};
      total += parts[i];
    }
    if (total != extent) return {{}, 0, message::split_sizes, d};
  }
  return plan;
}

}  // namespace ops

/// `slice<range{0, 4}, none, -1>(x)` is x[0:4, :, -1] as NumPy means it; dimensions not named are whole, positions
/// beyond the extent do not compile. Dimensions of which only a part is taken are uncut, the others keep their cuts;
/// with
/// `out_sharding<...>` a cut one may change too: it is gathered first. No element is copied where the part is read
/// by elementwise operations. Gradient: zeros with the cotangent in the part's place. Nothing is saved. Source:
/// jax.lax.slice, jax.numpy.ndarray.__getitem__.
template <slice_entry... Entries>
constexpr auto slice(const ArrayLike auto& x, OutSharding auto... options) {
  return ops::slicing<"slice", &ops::plan_slices<Entries...>>{}(x, options...);
}

/// `flip<0, -1>(x)`: these dimensions backwards, without any all of them; as slices otherwise. Source: jax.numpy.flip.
template <int... Dims>
constexpr auto flip(const ArrayLike auto& x, OutSharding auto... options) {
  return ops::slicing<"flip", &ops::plan_flip<Dims...>>{}(x, options...);
}

/// `auto [q, k, v] = split<-1, 3>(x)`: three equal parts along a dimension; `split<-1, 8, 2, 2>(x)`: parts of these
/// sizes. A tuple of arrays, each as a slice is. Source: jax.numpy.split, jax.lax.split.
template <int Axis, std::int64_t... Parts>
requires(sizeof...(Parts) > 0) constexpr auto split(const ArrayLike auto& x, OutSharding auto... options) {
  const auto part = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    return ops::slicing<"split", &ops::plan_split<Axis, I, Parts...>>{}(x, options...);
  };
  using first = decltype(part(std::integral_constant<std::size_t, 0>{}));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (Poison<first>) return std::tuple{(static_cast<void>(I), first{})...};
    else return std::tuple{part(std::integral_constant<std::size_t, I>{})...};
  }
  (std::make_index_sequence < ops::split_count<Parts...>() == 0 ? 1 : ops::split_count<Parts...>() > {});
}

}  // namespace tessera
