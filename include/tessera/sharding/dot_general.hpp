// SPDX-License-Identifier: Apache-2.0
// Sharding rule of contractions.
#pragma once

#include <tessera/core/resolve.hpp>

namespace tessera::sharding {

/// An ordered list of dimensions, four bits each (dimension + 1), the first one lowest.
using dim_list = std::uint64_t;

constexpr int dim_count(dim_list list) {
  int n = 0;
  for (; list != 0; list >>= 4) ++n;
  return n;
}
constexpr int dim_at(dim_list list, int i) { return static_cast<int>((list >> (4 * i)) & 15U) - 1; }
constexpr dim_list dim_append(dim_list list, int d) {
  return list | (static_cast<dim_list>(d + 1) << (4 * dim_count(list)));
}
constexpr bool dim_in(dim_list list, int d) {
  for (; list != 0; list >>= 4)
    if (static_cast<int>(list & 15U) - 1 == d) return true;
  return false;
}

/// Which dimensions of a contraction are summed over and which are batched. The result's dimensions are the batch
/// ones, then those left of lhs, then those left of rhs.
struct dot_dims {
  dim_list lhs_contracting = 0;
  dim_list rhs_contracting = 0;
  dim_list lhs_batch = 0;
  dim_list rhs_batch = 0;
  friend constexpr bool operator==(const dot_dims&, const dot_dims&) = default;
};

/// The dimensions of an operand that are neither contracted nor batched, in order.
constexpr dim_list free_dims(int rank, dim_list contracting, dim_list batch) {
  dim_list list = 0;
  for (int i = 0; i < rank; ++i)
    if (!dim_in(contracting, i) && !dim_in(batch, i)) list = dim_append(list, i);
  return list;
}

/// Dimensions of the result: may be more than an aval holds.
constexpr int dot_result_rank(const aval& lhs, const aval& rhs, const dot_dims& dims) {
  return lhs.rank + rhs.rank - 2 * dim_count(dims.lhs_contracting) - dim_count(dims.lhs_batch);
}

/// Extents and natural specs of the result: batch, lhs free, rhs free.
constexpr aval dot_result(const aval& lhs, const aval& rhs, const dot_dims& dims) {
  aval result = scalar_aval(lhs.type);
  const auto take = [&](const aval& from, dim_list list) {
    for (int i = 0; i < dim_count(list); ++i) result.dims[result.rank++] = from.dims[dim_at(list, i)];
  };
  take(lhs, dims.lhs_batch);
  take(lhs, free_dims(lhs.rank, dims.lhs_contracting, dims.lhs_batch));
  take(rhs, free_dims(rhs.rank, dims.rhs_contracting, dims.rhs_batch));
  return result;
}

constexpr bool batch_cut_alike(const aval& lhs, const aval& rhs, const dot_dims& dims) {
  for (int i = 0; i < dim_count(dims.lhs_batch); ++i)
    if (lhs.dims[dim_at(dims.lhs_batch, i)].axes != rhs.dims[dim_at(dims.rhs_batch, i)].axes) return false;
  return true;
}

/// The axes that cut every contracting dimension alike in both operands; nothing where some dimension is cut
/// differently.
constexpr axis_set summed_axes(const aval& lhs, const aval& rhs, const dot_dims& dims) {
  axis_set axes = 0;
  for (int i = 0; i < dim_count(dims.lhs_contracting); ++i) {
    const axis_list left = lhs.dims[dim_at(dims.lhs_contracting, i)].axes;
    if (left != rhs.dims[dim_at(dims.rhs_contracting, i)].axes) return 0;
    axes = static_cast<axis_set>(axes | set_of(left));
  }
  return axes;
}

/// Whether a chosen spec may leave the result unreduced as it does: over exactly the axes that are summed over.
constexpr message check_dot_marks(const aval& lhs, const aval& rhs, const dot_dims& dims, const aval& result) {
  if (result.reduced != 0) return message::marks_changed;
  if (result.unreduced == 0) return message::none;
  const bool exact = result.pending == combine::sum && result.unreduced == summed_axes(lhs, rhs, dims);
  return exact ? message::none : message::matmul_unreduced;
}

/// Batch specs are equal, contracting dimensions are uncut, free dimensions keep their cuts; with `out_spec` none of
/// this is asked, only that the spec is legal. It may leave the result unreduced over exactly the axes that cut both
/// contracting dimensions. Operands are not unreduced; that one is reduced is forgotten. Source: JAX, Explicit mode;
/// stricter in that one cut contracting dimension is refused too.
constexpr ruling dot_general(const aval& lhs, const aval& rhs, const dot_dims& dims, const spec_value* out_spec,
                             const mesh_value& mesh) {
  if (lhs.type != rhs.type) return refuse(message::matmul_dtype);
  if (lhs.type == dtype::bool_) return refuse(message::matmul_bool);
  for (int i = 0; i < dim_count(dims.lhs_contracting); ++i)
    if (lhs.dims[dim_at(dims.lhs_contracting, i)].extent != rhs.dims[dim_at(dims.rhs_contracting, i)].extent)
      return refuse(message::matmul_extent);
  for (int i = 0; i < dim_count(dims.lhs_batch); ++i) {
    const dim& l = lhs.dims[dim_at(dims.lhs_batch, i)];
    const dim& r = rhs.dims[dim_at(dims.rhs_batch, i)];
    if (l.extent != r.extent) return refuse(message::matmul_batch_extent);
  }
  if (dot_result_rank(lhs, rhs, dims) > max_rank) return refuse(message::shape_rank);
  const aval natural = dot_result(lhs, rhs, dims);
  if (lhs.unreduced != 0 || rhs.unreduced != 0) return refuse(message::unreduced_operand);
  if (out_spec != nullptr) {
    const ruling chosen = with_spec(natural, *out_spec, mesh);
    if (!chosen.ok()) return chosen;
    const message why = check_dot_marks(lhs, rhs, dims, chosen.result);
    return why == message::none ? chosen : ruling{chosen.result, why};
  }
  if (!batch_cut_alike(lhs, rhs, dims)) return refuse(message::matmul_batch_sharding);
  for (int i = 0; i < dim_count(dims.lhs_contracting); ++i) {
    const bool left = lhs.dims[dim_at(dims.lhs_contracting, i)].axes != 0;
    const bool right = rhs.dims[dim_at(dims.rhs_contracting, i)].axes != 0;
    if (left && right) return refuse(message::matmul_contracting_both);
    if (left || right) return refuse(message::matmul_contracting_one);
  }
  if (natural.axis_on_two_dims()) return {natural, message::matmul_duplicate};
  return {natural};
}

}  // namespace tessera::sharding
