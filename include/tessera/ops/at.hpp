// SPDX-License-Identifier: Apache-2.0
// Arrays with some elements changed: at(x, indices...).set(u), .add(u), .max(u), .min(u); and .get().
#pragma once

#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/gather.hpp>
#include <tessera/ops/slice.hpp>

namespace tessera {

namespace ops {

using sharding::scatter_kind;

/// Operands: the array, the updates, the indices.
template <int Axis, scatter_kind Kind, class... Options>
inline constexpr auto scatter_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  index_plan plan = plan_indices<Axis, false, Options...>(x[0], x.subspan(2), mesh);
  if (plan.failure != message::none) return refuse(plan.failure);
  plan.how.kind = Kind;
  using spec = typename spec_among<Options...>::type;
  ruling ruled = sharding::scatter(plan.array, plan.indices, x[1], plan.how, chosen_spec<void>(mesh).get(), mesh);
  const message sharded[] = {message::take_dimension_sharding, message::take_indices_sharding,
                             message::take_batch_sharding, message::scatter_sharding};
  if constexpr (!std::is_void_v<spec>) {
    for (message m : sharded)
      if (ruled.failure == m) ruled = {};
    return ruled.ok() ? with_cuts(x[0], *chosen_spec<spec>(mesh).get(), mesh) : ruled;
  } else {
    return ruled.ok() ? ruling{x[0]} : ruled;
  }
}};

/// `updates` cut, unreduced and reduced as `type`; one number for all is repeated.
constexpr graph::value spread_number(graph::value updates, const aval& type) {
  if (updates.type().rank != 0) return graph::reshard(updates, type);
  return graph::broadcast(graph::reshard(updates, with_marks(updates.type(), type)), type, 0);
}

template <int Axis, scatter_kind Kind, class... Options>
struct write_scatter {
  template <std::size_t N>
  constexpr graph::value operator()(const std::array<graph::value, N>& x, const aval& type) const {
    std::array<graph::value, N - 2> indices;
    for (std::size_t i = 2; i < N; ++i) indices[i - 2] = x[i];
    const int axis = sharding::place_of(Axis, type.rank);
    constexpr index_options options = options_of<Options...>();
    const sharding::indexing how{axis, options.batch, false, options.mode, Kind};
    const graph::value base = merge_indexed(graph::reshard(x[0], type), axis, N - 2);
    const graph::value at = joined_indices<N - 2, Options...>(indices, type, axis);
    // Every device sees all updates of its block: chosen dimensions are uncut, the others are cut as the result.
    aval chosen = sharding::gathered_type(base.type(), at.type(), how);
    const sharding::gather_dims dims(how, base.type().rank, at.type().rank);
    for (int d = 0; d < dims.rank; ++d)
      chosen.dims[d].axes = dims.chosen(d) ? 0 : base.type().dims[dims.of_array[d]].axes;
    const graph::value new_elements = spread_number(x[1], chosen);
    const aval read = indices_to_read(at.type(), base.type().rank, how, chosen);
    const graph::value changed = graph::scatter(base, graph::reshard(at, read), new_elements, how);
    aval natural = type;
    if (N > 3)
      for (std::size_t i = 0; i < N - 2; ++i) natural.dims[axis + static_cast<int>(i)].axes = 0;
    return graph::reshard(graph::reshape(changed, natural), type);
  }
};

/// Elements chosen by arrays of integers.
template <int Axis, class X, class Indices, class... Options>
struct chosen_elements {
  X x;
  Indices indices;

  template <scatter_kind Kind, text Name, class U>
  constexpr auto scatter(const U& updates) const {
    return std::apply(
        [&](const auto&... i) {
          return apply<Name, scatter_rule<Axis, Kind, Options...>>(write_scatter<Axis, Kind, Options...>{}, x, updates,
                                                                   i...);
        },
        indices);
  }

  constexpr auto get() const {
    return std::apply(
        [&](const auto&... i) {
          return apply<"at.get", take_rule<Axis, false, Options...>>(write_take<Axis, false, Options...>{}, x, i...);
        },
        indices);
  }
  constexpr auto set(const Operand auto& updates) const { return scatter<scatter_kind::set, "at.set">(updates); }
  constexpr auto add(const Operand auto& updates) const { return scatter<scatter_kind::add, "at.add">(updates); }
  constexpr auto max(const Operand auto& updates) const { return scatter<scatter_kind::max, "at.max">(updates); }
  constexpr auto min(const Operand auto& updates) const { return scatter<scatter_kind::min, "at.min">(updates); }
};

/// Operands: the array and what replaces its part, of the part's type or one number for all of it.
template <class OutSpec, slice_entry... Entries>
inline constexpr auto set_part_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const slice_plan plan = plan_slices<Entries...>(x[0]);
  if (plan.failure != message::none) return refuse(plan.failure, plan.dimension);
  if (x[1].type != x[0].type) return refuse(message::scatter_dtype);
  if (x[0].pending != combine::sum) return refuse(message::unreduced_operand);
  aval part = with_marks(scalar_aval(x[0].type), x[0]);
  for (int d = 0; d < x[0].rank; ++d) {
    const bool complete = plan.taken.of[d].is_all_of(x[0].dims[d].extent);
    if (std::is_void_v<OutSpec> && !complete)
      if (const ruling kept = sharding::keep_cut(x[0], d, mesh); !kept.ok()) return kept;
    if (!(plan.dropped & (1U << d)))
      part.dims[part.rank++] = {plan.taken.of[d].count, complete ? x[0].dims[d].axes : 0};
  }
  if (x[1].rank != 0 && !x[1].same_shape(part)) return ruling{part, message::scatter_shape};
  if (!marked_alike(x[0], x[1])) return ruling{part, message::scatter_sharding};
  if constexpr (!std::is_void_v<OutSpec>) return with_cuts(x[0], *chosen_spec<OutSpec>(mesh).get(), mesh);
  if (x[1].rank != 0 && !x[1].same_spec(part)) return ruling{part, message::scatter_sharding};
  return ruling{x[0]};
}};

template <slice_entry... Entries>
inline constexpr auto write_part = [](const std::array<graph::value, 2>& x, const aval& type) {
  const slice_plan plan = plan_slices<Entries...>(type);
  aval base = type;
  aval piece = type;
  aval part = with_marks(scalar_aval(type.type), type);
  for (int d = 0; d < type.rank; ++d) {
    if (!plan.taken.of[d].is_all_of(type.dims[d].extent)) base.dims[d].axes = 0;
    piece.dims[d] = {plan.taken.of[d].count, base.dims[d].axes};
    if (!(plan.dropped & (1U << d))) part.dims[part.rank++] = piece.dims[d];
  }
  const graph::value new_elements =
      x[1].type().rank == 0 ? spread_number(x[1], piece) : graph::reshape(graph::reshard(x[1], part), piece);
  return graph::reshard(graph::update_slice(graph::reshard(x[0], base), new_elements, plan.taken), type);
};

/// Elements of a static part.
template <class X, class OutSpec, slice_entry... Entries>
struct chosen_part {
  X x;

  constexpr auto get() const {
    return apply<"at.get", slice_rule<&plan_slices<Entries...>, OutSpec>>(write_slice<&plan_slices<Entries...>>, x);
  }
  constexpr auto set(const Operand auto& updates) const {
    return apply<"at.set", set_part_rule<OutSpec, Entries...>>(write_part<Entries...>, x, updates);
  }
  constexpr auto add(const Operand auto& updates) const { return set(get() + updates); }
  constexpr auto max(const Operand auto& updates) const { return set(maximum(get(), updates)); }
  constexpr auto min(const Operand auto& updates) const { return set(minimum(get(), updates)); }
};

template <int Axis, class X, class... Arguments>
constexpr auto choose(const X& x, const Arguments&... arguments) {
  constexpr std::size_t count = sizeof...(Arguments) - (IndexOption<Arguments> + ... + 0);
  return [&]<std::size_t... I, std::size_t... O>(std::index_sequence<I...>, std::index_sequence<O...>) {
    using all = std::tuple<Arguments...>;
    const auto references = std::tie(arguments...);
    const auto indices = std::tuple(std::get<I>(references)...);
    return chosen_elements<Axis, X, std::remove_cv_t<decltype(indices)>, std::tuple_element_t<count + O, all>...>{
        x, indices};
  }
  (std::make_index_sequence<count>{}, std::make_index_sequence<sizeof...(Arguments) - count>{});
}

}  // namespace ops

/// An argument of at behind the array: indices first, then options.
template <class T>
concept AtArgument = ArrayLike<T> || IndexOption<T>;

/// `at(x, i).add(u)`, `at<1>(x, i, mode_drop).set(u)`, `at(x, i, j).get()`: a copy of x in which the elements x[i], or
/// x[i, j], have had something done to them: `set` replaces them, `add` adds, `max` and `min` keep the larger or
/// smaller;
/// `get` only reads (see take). Indices choose along dimension Axis and, several of them, those that follow; they
/// broadcast together. u has the extents of what is chosen, or is one number. Where an index occurs twice, updates
/// happen in the order of the indices. Options: `mode_clip`, `mode_wrap`, `mode_drop`, `batch_dims<k>`,
/// `out_sharding<...>`. Cuts: indexed dimensions and indices are uncut, u is cut as what it changes, the result as x.
/// With out_sharding the result is cut as it says, indexed dimensions too: each device changes what it holds. x and u
/// are unreduced over the same axes and reduced over the same ones, or a number goes to a reduced x; extrema refuse
/// unreduced arrays. Gradient: to x and to u, for `set` only to the last update of an element, for extrema in equal
/// shares. x's memory is reused where nobody else reads it. Source: jax.numpy.ndarray.at.
template <int Axis = 0, ArrayLike First, AtArgument... Rest>
constexpr auto at(const ArrayLike auto& x, const First& first, const Rest&... rest) {
  return ops::choose<Axis>(x, first, rest...);
}

/// `at<range{0, 4}, -1>(x).set(u)`: the same for a static part, named as in slice.
template <slice_entry... Entries>
requires(sizeof...(Entries) > 0) constexpr auto at(const ArrayLike auto& x, OutSharding auto... options) {
  using X = std::remove_cvref_t<decltype(x)>;
  return ops::chosen_part<X, typename ops::spec_among<decltype(options)...>::type, Entries...>{x};
}

}  // namespace tessera
