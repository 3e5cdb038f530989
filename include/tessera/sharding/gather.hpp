// SPDX-License-Identifier: Apache-2.0
// Sharding rules of gathers and scatters: elements of one dimension chosen by an array of integers.
#pragma once

#include <tessera/core/resolve.hpp>

namespace tessera::sharding {

/// What an index outside its dimension does. `drop`: it counts from the end if negative; if still outside, it reads
/// zero and writes nothing. `clip`: the nearest end. `wrap`: once more from the start.
enum class index_mode : std::uint8_t { drop, clip, wrap };

/// What an update does to the element it meets.
enum class scatter_kind : std::uint8_t { add, set, max, min };

/// How indices choose along dimension `axis` of an array: the first `batch` dimensions of both go together; if
/// `pointwise`, all others but `axis` do too, and each result element has an index of its own.
struct indexing {
  int axis = 0;
  int batch = 0;
  bool pointwise = false;
  index_mode mode = index_mode::drop;
  scatter_kind kind = scatter_kind::add;

  friend constexpr bool operator==(const indexing&, const indexing&) = default;
};

/// For each dimension of the result where it comes from: a dimension of the array, of the indices, or both.
struct gather_dims {
  int rank = 0;
  int of_array[2 * max_rank]{};
  int of_indices[2 * max_rank]{};

  constexpr gather_dims(const indexing& how, int array_rank, int index_rank) {
    const auto add = [&](int array, int index) {
      of_array[rank] = array;
      of_indices[rank++] = index;
    };
    if (how.pointwise) {
      for (int d = 0; d < array_rank; ++d) add(d == how.axis ? -1 : d, d);
      return;
    }
    for (int d = 0; d < how.axis; ++d) add(d, d < how.batch ? d : -1);
    for (int d = how.batch; d < index_rank; ++d) add(-1, d);
    for (int d = how.axis + 1; d < array_rank; ++d) add(d, -1);
  }

  /// Whether the dimension is one of chosen elements.
  constexpr bool chosen(int d) const { return of_array[d] < 0; }
};

/// The result of a gather, or the updates of a scatter: extents, and cuts where only one side has the dimension;
/// unreduced and reduced as the array is.
constexpr aval gathered_type(const aval& array, const aval& indices, const indexing& how) {
  const gather_dims dims(how, array.rank, indices.rank);
  aval result = with_marks(scalar_aval(array.type), array);
  result.rank = dims.rank;
  for (int d = 0; d < dims.rank && d < max_rank; ++d)
    result.dims[d] = dims.chosen(d) ? indices.dims[dims.of_indices[d]] : array.dims[dims.of_array[d]];
  return result;
}

/// Whether array and indices fit together at all.
constexpr ruling check_indices(const aval& array, const aval& indices, const indexing& how) {
  if (indices.type != dtype::i32 && indices.type != dtype::u32) return refuse(message::take_indices);
  if (const message why = check_unmarked(indices); why != message::none) return refuse(why);
  if (array.pending != combine::sum) return refuse(message::unreduced_operand);
  if (how.axis < 0) return refuse(message::shape_no_dimension);
  if (how.batch > how.axis || how.batch > indices.rank) return refuse(message::take_batch);
  if (how.pointwise && indices.rank != array.rank) return refuse(message::take_batch);
  const gather_dims dims(how, array.rank, indices.rank);
  if (dims.rank > max_rank) return refuse(message::shape_rank);
  for (int d = 0; d < dims.rank; ++d)
    if (dims.of_array[d] >= 0 && dims.of_indices[d] >= 0 &&
        array.dims[dims.of_array[d]].extent != indices.dims[dims.of_indices[d]].extent)
      return refuse(message::take_batch, d);
  if (array.dims[how.axis].extent == 0 && indices.size() > 0) return refuse(message::take_empty, how.axis);
  return {array};
}

/// The indexed dimension and those of chosen elements are uncut, untouched dimensions keep their cuts, and of
/// dimensions that go together an uncut one adapts. With `out_spec` all may be cut in any way. Unreduced and reduced
/// axes of the array stay. Source: JAX, Explicit mode.
constexpr ruling gather(const aval& array, const aval& indices, const indexing& how, const spec_value* out_spec,
                        const mesh_value& mesh) {
  if (const ruling checked = check_indices(array, indices, how); !checked.ok()) return checked;
  aval result = gathered_type(array, indices, how);
  const gather_dims dims(how, array.rank, indices.rank);
  if (out_spec != nullptr) {
    for (int d = 0; d < dims.rank; ++d) result.dims[d].axes = 0;
    return with_cuts(result, *out_spec, mesh);
  }
  if (array.dims[how.axis].axes != 0) return refuse(message::take_dimension_sharding, how.axis);
  for (int d = 0; d < dims.rank; ++d) {
    if (dims.of_indices[d] < 0) continue;
    const axis_list cut = indices.dims[dims.of_indices[d]].axes;
    if (dims.chosen(d) && cut != 0) return refuse(message::take_indices_sharding, dims.of_indices[d]);
    if (result.dims[d].axes != 0 && cut != 0 && result.dims[d].axes != cut)
      return refuse(message::take_batch_sharding, d);
    if (result.dims[d].axes == 0) result.dims[d].axes = cut;
  }
  if (result.axis_on_two_dims()) return {result, message::take_batch_sharding};
  const ruling checked = check_marks(result, mesh);
  return checked.ok() ? ruling{result} : checked;
}

/// As of a gather; updates (or one number for all) have the gathered extents and, where they are not of chosen
/// elements, the cuts of the array. The result is the array's type, or cut as `out_spec` says. To add and to set are
/// linear: array and updates are unreduced over the same axes, or neither is; extrema refuse pending sums.
constexpr ruling scatter(const aval& array, const aval& indices, const aval& updates, const indexing& how,
                         const spec_value* out_spec, const mesh_value& mesh) {
  if (updates.type != array.type) return refuse(message::scatter_dtype);
  if (how.kind != scatter_kind::set && array.type == dtype::bool_) return refuse(message::elementwise_needs_number);
  if (const ruling checked = check_indices(array, indices, how); !checked.ok()) return checked;
  const aval expected = gathered_type(array, indices, how);
  if (updates.rank != 0 && !updates.same_shape(expected)) return {expected, message::scatter_shape};
  const bool linear = how.kind == scatter_kind::add || how.kind == scatter_kind::set;
  if (!linear && (array.unreduced | updates.unreduced) != 0) return refuse(message::unreduced_operand);
  if (!marked_alike(array, updates)) return {expected, message::scatter_sharding};
  if (out_spec != nullptr) return with_cuts(array, *out_spec, mesh);
  const ruling read = gather(array, indices, how, nullptr, mesh);
  if (!read.ok()) return read;
  const gather_dims dims(how, array.rank, indices.rank);
  for (int d = 0; d < dims.rank; ++d) {
    const axis_list cut = dims.chosen(d) ? 0 : array.dims[dims.of_array[d]].axes;
    if (updates.rank != 0 && updates.dims[d].axes != cut) return {expected, message::scatter_sharding, d};
  }
  return {array};
}

}  // namespace tessera::sharding
