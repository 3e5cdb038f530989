// SPDX-License-Identifier: Apache-2.0
// Class numbers as rows of zeros with a one.
#pragma once

#include <tessera/ops/apply.hpp>

namespace tessera {

namespace ops {

template <std::int64_t Classes, dtype To>
inline constexpr auto one_hot_rule = [](std::span<const aval> x, const mesh_value&) {
  if (x[0].type != dtype::i32 && x[0].type != dtype::u32) return refuse(message::one_hot_dtype);
  if (x[0].rank == max_rank) return refuse(message::shape_rank);
  if (Classes < 0) return refuse(message::shape_extent, x[0].rank);
  ruling ruled{x[0]};
  ruled.result.type = To;
  ruled.result.dims[ruled.result.rank++] = {Classes, 0};
  return ruled;
};

/// labels[..., 1] == 0, 1, ..., classes - 1
inline constexpr auto write_class_mask = [](graph::value labels, const aval& type) {
  aval column = labels.type();
  column.dims[column.rank++] = {1, 0};
  aval row = scalar_aval(labels.type().type);
  row.rank = column.rank;
  for (int i = 0; i < row.rank; ++i) row.dims[i] = {1, 0};
  row.dims[row.rank - 1] = type.dims[type.rank - 1];
  const graph::value classes = graph::write(labels.owner, op::iota, row, {});
  labels.owner->at(classes.id).attribute[0] = static_cast<std::uint64_t>(row.rank - 1);
  return graph::binary(op::eq, graph::reshape(labels, column), classes);
};

}  // namespace ops

/// `one_hot<10>(labels)`: int32 or uint32[...] -> To[..., Classes], 1 where the class number equals the label and 0
/// elsewhere; a label outside [0, Classes) gives a row of zeros. Cut as the labels are, the classes uncut. No gradient.
/// Source: jax.nn.one_hot.
template <std::int64_t Classes, dtype To = dtype::f32>
constexpr auto one_hot(const ArrayLike auto& labels) {
  return ops::apply<"one_hot", ops::one_hot_rule<Classes, To>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        return graph::convert(ops::write_class_mask(v[0], type), To);
      },
      labels);
}

}  // namespace tessera
