// SPDX-License-Identifier: Apache-2.0
// Derivatives of contractions: contractions that are cut as their operands are.
#pragma once

#include <tessera/graph/value.hpp>
#include <tessera/transform/grad_layout.hpp>

namespace tessera::transform {

using graph::op;
using graph::value;

/// The inverse of a permutation of `rank` dimensions.
constexpr sharding::dim_list inverse(sharding::dim_list permutation, int rank) {
  sharding::dim_list result = 0;
  for (int i = 0; i < rank; ++i)
    for (int j = 0; j < rank; ++j)
      if (sharding::dim_at(permutation, j) == i) result = sharding::dim_append(result, j);
  return result;
}

/// Notes that node `id` cannot be differentiated.
constexpr void note_fault(graph::graph& g, message why, int id) {
  const graph::node& n = g.at(id);
  graph::trace_fault fault{why, -1, g.type(n.operands[0]), {}};
  if (n.operand_count() > 1) fault.beside = g.type(n.operands[1]);
  g.outermost().report(fault);
}

/// A contraction that gives a gradient. Where that is unreduced, it is so over the axes that the contraction sums over,
/// and no others: an operand that was reduced in vain is a fault of the program, noted at its product, `node`.
constexpr value checked_dot(value lhs, value rhs, const sharding::dot_dims& dims, const aval& type, int node) {
  const aval left = without_marks(lhs.type());
  const aval right = without_marks(rhs.type());
  if (type.unreduced != 0 && sharding::check_dot_marks(left, right, dims, type) != message::none) {
    note_fault(*lhs.owner, message::grad_reduced_operand, node);
    return graph::zeros(lhs.owner, type);
  }
  aval summed = type;
  summed.reduced = 0;
  return graph::reshard(graph::dot(lhs, rhs, dims, summed), type);
}

/// A contraction of ct with `other`, arranged like `operand`, whose contracting and batch dimensions are given. The
/// products are asked for with the operand's own spec, so a cut contraction ends in an all-reduce or a reduce-scatter.
constexpr value dot_cotangent(value ct, value other, aval operand, sharding::dim_list operand_contracting,
                              sharding::dim_list operand_batch, sharding::dim_list other_contracting,
                              sharding::dim_list other_batch, int ct_first_other_free, int node) {
  sharding::dot_dims dims;
  const sharding::dim_list other_free = sharding::free_dims(other.type().rank, other_contracting, other_batch);
  const int batches = sharding::dim_count(operand_batch);
  dims.lhs_batch = graph::dims_in_order(batches);
  dims.rhs_batch = other_batch;
  dims.rhs_contracting = other_free;
  dims.lhs_contracting = graph::dims_in_order(sharding::dim_count(other_free), ct_first_other_free);
  // The product's dimensions in terms of the operand's: batch, then free, then contracting in the other's order.
  const sharding::dim_list operand_free = sharding::free_dims(operand.rank, operand_contracting, operand_batch);
  sharding::dim_list order = operand_batch;
  for (int i = 0; i < sharding::dim_count(operand_free); ++i)
    order = sharding::dim_append(order, sharding::dim_at(operand_free, i));
  for (int d = 0; d < other.type().rank; ++d)
    for (int i = 0; i < sharding::dim_count(other_contracting); ++i)
      if (sharding::dim_at(other_contracting, i) == d)
        order = sharding::dim_append(order, sharding::dim_at(operand_contracting, i));
  aval product = cotangent_type(operand);
  product.type = ct.type().type;
  for (int i = 0; i < operand.rank; ++i) product.dims[i] = operand.dims[sharding::dim_at(order, i)];
  return graph::transpose(checked_dot(ct, other, dims, product, node), inverse(order, operand.rank));
}

/// The same for rhs, whose free dimensions come last in the result: other x ct, so that matrices need no transpose.
constexpr value dot_rhs_cotangent(value ct, value lhs, aval rhs, const sharding::dot_dims& of, int node) {
  sharding::dot_dims dims;
  const sharding::dim_list lhs_free = sharding::free_dims(lhs.type().rank, of.lhs_contracting, of.lhs_batch);
  const int batches = sharding::dim_count(of.lhs_batch);
  dims.lhs_batch = of.lhs_batch;
  dims.rhs_batch = graph::dims_in_order(batches);
  dims.lhs_contracting = lhs_free;
  dims.rhs_contracting = graph::dims_in_order(sharding::dim_count(lhs_free), batches);
  sharding::dim_list order = of.rhs_batch;
  for (int d = 0; d < lhs.type().rank; ++d)
    for (int i = 0; i < sharding::dim_count(of.lhs_contracting); ++i)
      if (sharding::dim_at(of.lhs_contracting, i) == d)
        order = sharding::dim_append(order, sharding::dim_at(of.rhs_contracting, i));
  const sharding::dim_list rhs_free = sharding::free_dims(rhs.rank, of.rhs_contracting, of.rhs_batch);
  for (int i = 0; i < sharding::dim_count(rhs_free); ++i)
    order = sharding::dim_append(order, sharding::dim_at(rhs_free, i));
  aval product = cotangent_type(rhs);
  product.type = ct.type().type;
  for (int i = 0; i < rhs.rank; ++i) product.dims[i] = rhs.dims[sharding::dim_at(order, i)];
  return graph::transpose(checked_dot(lhs, ct, dims, product, node), inverse(order, rhs.rank));
}

constexpr cotangents dot_cotangents(value lhs, value rhs, const sharding::dot_dims& dims, value ct, int node) {
  const int lhs_free = sharding::dim_count(sharding::free_dims(lhs.type().rank, dims.lhs_contracting, dims.lhs_batch));
  const int batches = sharding::dim_count(dims.lhs_batch);
  // First that of rhs, usually a weight: then lhs, usually an activation, need not outlive it.
  const value to_rhs = dot_rhs_cotangent(ct, lhs, rhs.type(), dims, node);
  return {{dot_cotangent(ct, rhs, lhs.type(), dims.lhs_contracting, dims.lhs_batch, dims.rhs_contracting,
                         dims.rhs_batch, batches + lhs_free, node),
           to_rhs}};
}

}  // namespace tessera::transform
