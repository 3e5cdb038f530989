// SPDX-License-Identifier: Apache-2.0
// Sharding rule of matrix products.
#pragma once

#include <tessera/sharding/dot_general.hpp>
#include <tessera/sharding/reshape.hpp>

namespace tessera::sharding {

/// What `matmul` means for operands of these ranks: (m, k) x (k, n), a dimension left out on either side; leading
/// dimensions are batched where both have them.
constexpr dot_dims matmul_dims(int lhs_rank, int rhs_rank) {
  dot_dims dims;
  dims.lhs_contracting = dim_append(0, lhs_rank - 1);
  dims.rhs_contracting = dim_append(0, rhs_rank == 1 ? 0 : rhs_rank - 2);
  if (lhs_rank <= 2 || rhs_rank <= 2) return dims;
  for (int i = 0; i < rhs_rank - 2; ++i) {
    dims.lhs_batch = dim_append(dims.lhs_batch, i);
    dims.rhs_batch = dim_append(dims.rhs_batch, i);
  }
  return dims;
}

/// The permutation of the contraction's dimensions that matmul gives: m goes behind the leading dimensions of rhs.
constexpr dim_list matmul_order(int lhs_rank, int rhs_rank) {
  const int rank = lhs_rank + rhs_rank - 2 - dim_count(matmul_dims(lhs_rank, rhs_rank).lhs_batch);
  dim_list order = 0;
  const bool behind = lhs_rank == 2 && rhs_rank > 2;
  for (int i = 0; i < rank; ++i) order = dim_append(order, !behind || i == rank - 1 ? i : i == rank - 2 ? 0 : i + 1);
  return order;
}

/// The rule of `matmul`: that of dot_general, and batch specs are equal even where `out_spec` is given. The result is
/// the contraction's, before matmul_order.
constexpr ruling matmul_contraction(const aval& lhs, const aval& rhs, const spec_value* out_spec,
                                    const mesh_value& mesh) {
  if (lhs.rank < 1 || rhs.rank < 1) return refuse(message::matmul_rank);
  if (lhs.rank > 2 && rhs.rank > 2 && lhs.rank != rhs.rank) return refuse(message::matmul_batch_extent);
  const dot_dims dims = matmul_dims(lhs.rank, rhs.rank);
  const ruling ruled = dot_general(lhs, rhs, dims, out_spec, mesh);
  return ruled.ok() && !batch_cut_alike(lhs, rhs, dims) ? refuse(message::matmul_batch_sharding) : ruled;
}

/// The rule of `matmul`: its contraction, transposed so that a matrix from the left stands behind leading dimensions
/// from the right.
constexpr ruling matmul(const aval& lhs, const aval& rhs, const spec_value* out_spec, const mesh_value& mesh) {
  if (lhs.rank != 2 || rhs.rank <= 2) return matmul_contraction(lhs, rhs, out_spec, mesh);
  const dim_list order = matmul_order(lhs.rank, rhs.rank);
  if (out_spec == nullptr || out_spec->rank > rhs.rank) {
    const ruling ruled = matmul_contraction(lhs, rhs, out_spec, mesh);
    return ruled.ok() ? transpose(ruled.result, order) : ruled;
  }
  const spec_value natural = unpermuted(*out_spec, order);
  const ruling ruled = matmul_contraction(lhs, rhs, &natural, mesh);
  return ruled.ok() ? transpose(ruled.result, order) : ruled;
}

}  // namespace tessera::sharding
