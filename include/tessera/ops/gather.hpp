// SPDX-License-Identifier: Apache-2.0
// Elements chosen by arrays of integers: take, take_along_axis.
#pragma once

#include <tessera/graph/gather.hpp>
#include <tessera/ops/options.hpp>
#include <tessera/sharding/slice.hpp>

#include <optional>

namespace tessera {

/// What indices outside the dimension do, as an argument of take and at. Without one an index counts from the end if it
/// is negative, and one that is still outside raises index_error with its value and position. `mode_drop`: it reads
/// zero and writes nothing. `mode_clip`: the nearest end (negative ones too). `mode_wrap`: once more from the start.
template <sharding::index_mode Mode>
struct index_mode_t {};
inline constexpr index_mode_t<sharding::index_mode::drop> mode_drop{};
inline constexpr index_mode_t<sharding::index_mode::clip> mode_clip{};
inline constexpr index_mode_t<sharding::index_mode::wrap> mode_wrap{};

/// An argument of take: so many leading dimensions of array and indices go together.
template <int Count>
struct batch_dims_t {};
template <int Count>
inline constexpr batch_dims_t<Count> batch_dims{};

namespace ops {

/// What the options of a call say.
struct index_options {
  int batch = 0;
  bool checked = true;
  sharding::index_mode mode = sharding::index_mode::drop;
};

template <class T>
inline constexpr bool is_index_option = is_out_sharding<T>;
template <sharding::index_mode Mode>
inline constexpr bool is_index_option<index_mode_t<Mode>> = true;
template <int Count>
inline constexpr bool is_index_option<batch_dims_t<Count>> = true;

constexpr void read_option(index_options&, const auto&) {}
template <sharding::index_mode Mode>
constexpr void read_option(index_options& options, const index_mode_t<Mode>&) {
  options.checked = false;
  options.mode = Mode;
}
template <int Count>
constexpr void read_option(index_options& options, const batch_dims_t<Count>&) {
  options.batch = Count;
}

template <class... Options>
constexpr index_options options_of() {
  index_options options;
  (read_option(options, Options{}), ...);
  return options;
}

/// `array` with `count` dimensions from `axis` on as one; if one of them is cut, that one is.
constexpr aval with_merged(const aval& array, int axis, int count) {
  aval merged = scalar_aval(array.type);
  for (int d = 0; d < array.rank && merged.rank < max_rank; ++d) {
    if (d <= axis || d >= axis + count) {
      merged.dims[merged.rank++] = array.dims[d];
      continue;
    }
    dim& joined = merged.dims[axis];
    joined.extent *= array.dims[d].extent;
    if (joined.axes == 0) joined.axes = array.dims[d].axes;
  }
  return with_marks(merged, array);
}

/// A call's operands for the rules: the array with one indexed dimension, one array of indices.
struct index_plan {
  aval array{};
  aval indices{};
  sharding::indexing how{};
  message failure = message::none;
};

template <int Axis, bool Pointwise, class... Options>
constexpr index_plan plan_indices(const aval& array, std::span<const aval> indices, const mesh_value& mesh) {
  constexpr index_options options = options_of<Options...>();
  const int axis = sharding::place_of(Axis, array.rank);
  const int count = static_cast<int>(indices.size());
  index_plan plan{array, indices[0], {axis, options.batch, Pointwise, options.mode}};
  if (axis < 0 || axis + count > array.rank) plan.failure = message::shape_no_dimension;
  else if (count > 1 && options.mode == sharding::index_mode::wrap) plan.failure = message::take_wrap;
  for (const aval& i : indices)
    if (i.type != dtype::i32 && i.type != dtype::u32) plan.failure = message::take_indices;
  if (plan.failure != message::none || count == 1) return plan;
  const ruling together = sharding::elementwise(indices, mesh);
  if (!together.ok()) plan.failure = together.failure;
  plan.indices = together.result;
  plan.array = with_merged(array, axis, count);
  return plan;
}

template <int Axis, bool Pointwise, class... Options>
inline constexpr auto take_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const index_plan plan = plan_indices<Axis, Pointwise, Options...>(x[0], x.subspan(1), mesh);
  if (plan.failure != message::none) return refuse(plan.failure);
  using spec = typename spec_among<Options...>::type;
  return sharding::gather(plan.array, plan.indices, plan.how, chosen_spec<spec>(mesh).get(), mesh);
}};

/// One of several indices as int32, counted from the start; `inside` says where it is within the extent.
constexpr graph::value plain_index(graph::value index, std::int64_t extent, const index_options& options,
                                   std::optional<graph::value>& inside) {
  const auto number = [&](std::int64_t n) { return graph::number_like(index, static_cast<double>(n)); };
  if (options.checked) index = graph::check_indices(index, extent);
  if (options.mode == sharding::index_mode::clip) {
    index = graph::binary(op::max, graph::binary(op::min, index, number(extent - 1)), number(0));
  } else if (index.type().type == dtype::i32) {
    index = graph::select(graph::binary(op::lt, index, number(0)), index + number(extent), index);
  }
  if (!options.checked && options.mode == sharding::index_mode::drop) {
    const graph::value here = graph::binary(op::logical_and, graph::binary(op::ge, index, number(0)),
                                            graph::binary(op::lt, index, number(extent)));
    inside = inside ? graph::binary(op::logical_and, *inside, here) : here;
  }
  return graph::convert(index, dtype::i32);
}

/// The array of indices that the node reads: the one there is, or several as positions in the merged dimension.
template <std::size_t Count, class... Options>
constexpr graph::value joined_indices(const std::array<graph::value, Count>& indices, const aval& array, int axis) {
  constexpr index_options options = options_of<Options...>();
  if constexpr (Count == 1) {
    return options.checked ? graph::check_indices(indices[0], array.dims[axis].extent) : indices[0];
  } else {
    std::optional<graph::value> inside;
    std::int64_t extent = array.dims[axis].extent;
    graph::value joined = plain_index(indices[0], extent, options, inside);
    for (std::size_t i = 1; i < Count; ++i) {
      const std::int64_t here = array.dims[axis + static_cast<int>(i)].extent;
      joined = joined * static_cast<double>(here) + plain_index(indices[i], here, options, inside);
      extent *= here;
    }
    return inside ? graph::select(*inside, joined, graph::number_like(joined, static_cast<double>(extent))) : joined;
  }
}

/// How the array of a gather is cut while it is read: untouched dimensions as the result; the indexed one stays cut if
/// adding up what devices find moves less than gathering the array.
constexpr aval array_to_read(aval array, const aval& indices, const sharding::indexing& how, const aval& result) {
  const sharding::gather_dims dims(how, array.rank, indices.rank);
  axis_list kept = array.dims[how.axis].axes;
  for (int d = 0; d < dims.rank; ++d)
    if (dims.of_indices[d] >= 0 && (set_of(result.dims[d].axes) & set_of(kept)) != 0) kept = 0;
  if (2 * result.size() > array.size()) kept = 0;
  for (int d = 0; d < dims.rank; ++d)
    if (dims.of_array[d] >= 0)
      array.dims[dims.of_array[d]].axes = (set_of(result.dims[d].axes) & set_of(kept)) != 0 ? 0 : result.dims[d].axes;
  array.dims[how.axis].axes = kept;
  return array;
}

constexpr aval indices_to_read(aval indices, int array_rank, const sharding::indexing& how, const aval& result) {
  const sharding::gather_dims dims(how, array_rank, indices.rank);
  for (int d = 0; d < dims.rank; ++d)
    if (dims.of_indices[d] >= 0) indices.dims[dims.of_indices[d]].axes = result.dims[d].axes;
  return indices;
}

/// The array with its indexed dimensions as one.
constexpr graph::value merge_indexed(graph::value array, int axis, int count) {
  if (count == 1) return array;
  aval whole = array.type();
  for (int d = axis; d < axis + count; ++d) whole.dims[d].axes = 0;
  return graph::reshape(graph::reshard(array, whole), with_merged(whole, axis, count));
}

template <int Axis, bool Pointwise, class... Options>
struct write_take {
  template <std::size_t N>
  constexpr graph::value operator()(const std::array<graph::value, N>& x, const aval& type) const {
    std::array<graph::value, N - 1> indices;
    for (std::size_t i = 1; i < N; ++i) indices[i - 1] = x[i];
    const aval from = x[0].type();
    const int axis = sharding::place_of(Axis, from.rank);
    constexpr index_options options = options_of<Options...>();
    const sharding::indexing how{axis, options.batch, Pointwise, options.mode};
    const graph::value array = merge_indexed(x[0], axis, N - 1);
    const graph::value at = joined_indices<N - 1, Options...>(indices, from, axis);
    const aval read = array_to_read(array.type(), at.type(), how, type);
    return graph::gather(graph::reshard(array, read),
                         graph::reshard(at, indices_to_read(at.type(), read.rank, how, type)), how, type);
  }
};

}  // namespace ops

/// What may stand behind the indices of take and at.
template <class T>
concept IndexOption = ops::is_index_option<std::remove_cvref_t<T>>;

/// `take<0>(table, ids)` is table[ids]: x[n_0, ..., n_Axis, ...] and int32 or uint32[m...] -> x's dtype [n_0, ...,
/// m..., ...], elements of one dimension chosen by indices of any rank. With `batch_dims<k>` the first k dimensions of
/// both go together: x[b, indices[b]]. Options, in any order: `mode_clip`, `mode_wrap`, `mode_drop`, `batch_dims<k>`,
/// `out_sharding<...>`.
/// Cuts: the indexed dimension and indices that are not batched are uncut, untouched dimensions keep theirs. With
/// out_sharding all may be cut: the indices go along with the result, and a cut indexed dimension is gathered, or,
/// where that moves less, each device reads its part and the sum is all-reduced. Unreduced and reduced arrays stay so;
/// indices are neither. Gradient: the cotangent added to zeros at the indices, in their order. Saved: the indices.
/// Errors: index_error.
/// Source: jax.numpy.take, jax.numpy.ndarray.at[].get.
template <int Axis, IndexOption... Options>
constexpr auto take(const ArrayLike auto& x, const ArrayLike auto& indices, Options...) {
  return ops::apply<"take", ops::take_rule<Axis, false, Options...>>(ops::write_take<Axis, false, Options...>{}, x,
                                                                     indices);
}

/// `take_along_axis<1>(x, indices)`: x and indices go together in all dimensions but one: y[i, j] = x[i, indices[i,
/// j]]. Otherwise as take. Source: jax.numpy.take_along_axis.
template <int Axis, IndexOption... Options>
constexpr auto take_along_axis(const ArrayLike auto& x, const ArrayLike auto& indices, Options...) {
  return ops::apply<"take_along_axis", ops::take_rule<Axis, true, Options...>>(
      ops::write_take<Axis, true, Options...>{}, x, indices);
}

}  // namespace tessera
