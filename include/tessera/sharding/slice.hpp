// SPDX-License-Identifier: Apache-2.0
// Sharding rules of static slices, padding and concatenation.
#pragma once

#include <tessera/core/resolve.hpp>

#include <span>

namespace tessera::sharding {

/// Elements start, start + stride, ... of one dimension, `count` of them; a negative stride goes backwards.
struct dim_slice {
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  constexpr bool is_all_of(std::int64_t extent) const {
    return start == 0 && count == extent && (stride == 1 || count <= 1);
  }
  friend constexpr bool operator==(const dim_slice&, const dim_slice&) = default;
};

/// One slice a dimension.
struct slices {
  dim_slice of[max_rank]{};
};

/// All of `a`.
constexpr slices everything(const aval& a) {
  slices all;
  for (int d = 0; d < a.rank; ++d) all.of[d].count = a.dims[d].extent;
  return all;
}

/// The place that a dimension counted from either end has, or -1.
constexpr int place_of(int named, int rank) {
  const int place = named < 0 ? named + rank : named;
  return place < rank ? place : -1;
}

/// Refuses dimension `d` of `a`, which would change, if it is cut.
constexpr ruling keep_cut(const aval& a, int d, const mesh_value& mesh) {
  if (a.dims[d].axes == 0) return {a};
  return {{}, message::layout_sharding, d, mesh.name(axis_at(a.dims[d].axes, 0))};
}

/// Dimensions of which only a part is taken are uncut, the others keep their cuts; those of `dropped` (one element
/// each) vanish. With `out_spec` any may be cut, and the result is cut as it says. Unreduced and reduced axes stay.
constexpr ruling slice(const aval& operand, const slices& taken, std::uint32_t dropped, const spec_value* out_spec,
                       const mesh_value& mesh) {
  aval result = with_marks(scalar_aval(operand.type), operand);
  for (int d = 0; d < operand.rank; ++d) {
    const bool whole = taken.of[d].is_all_of(operand.dims[d].extent);
    if (!whole && out_spec == nullptr)
      if (const ruling kept = keep_cut(operand, d, mesh); !kept.ok()) return kept;
    if (!(dropped & (1U << d))) result.dims[result.rank++] = {taken.of[d].count, whole ? operand.dims[d].axes : 0};
  }
  return out_spec != nullptr ? with_cuts(result, *out_spec, mesh) : ruling{result};
}

/// How many elements stand before, behind and between those of a dimension; negative ones before and behind are
/// cropped.
struct dim_padding {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t interior = 0;

  constexpr bool nothing() const { return low == 0 && high == 0 && interior == 0; }
  constexpr std::int64_t extent(std::int64_t of) const { return low + of + (of > 0 ? (of - 1) * interior : 0) + high; }
};

/// One padding a dimension.
struct paddings {
  dim_padding of[max_rank]{};
};

/// Padded dimensions are uncut, the others keep their cuts; with `out_spec` the result is cut as it says.
constexpr ruling pad(const aval& operand, const paddings& by, const spec_value* out_spec, const mesh_value& mesh) {
  aval result = operand;
  for (int d = 0; d < operand.rank; ++d) {
    if (by.of[d].nothing()) continue;
    if (by.of[d].interior < 0) return refuse(message::pad_interior, d);
    result.dims[d] = {by.of[d].extent(operand.dims[d].extent), 0};
    if (result.dims[d].extent < 0) return refuse(message::pad_extent, d);
    if (out_spec == nullptr)
      if (const ruling kept = keep_cut(operand, d, mesh); !kept.ok()) return kept;
  }
  return out_spec != nullptr ? with_cuts(result, *out_spec, mesh) : ruling{result};
}

/// Operands of one dtype with equal extents but along `place`; all are cut alike, and along `place` not at all. With
/// `out_spec` they may be cut in any way. All are unreduced and reduced over the same axes.
constexpr ruling concatenate(std::span<const aval> operands, int place, const spec_value* out_spec,
                             const mesh_value& mesh) {
  aval result = operands[0];
  if (place < 0) return refuse(message::shape_no_dimension);
  for (const aval& a : operands.subspan(1)) {
    if (a.type != result.type) return refuse(message::concatenate_dtype);
    if (a.rank != result.rank) return refuse(message::concatenate_shape);
    for (int d = 0; d < a.rank; ++d)
      if (d != place && a.dims[d].extent != result.dims[d].extent) return refuse(message::concatenate_shape, d);
    result.dims[place].extent += a.dims[place].extent;
  }
  for (const aval& a : operands)
    if (!(with_marks(a, result) == a)) return refuse(message::concatenate_sharding);
  if (out_spec != nullptr) {
    result.dims[place].axes = 0;
    return with_cuts(result, *out_spec, mesh);
  }
  for (const aval& a : operands)
    if (!a.same_spec(operands[0])) return refuse(message::concatenate_sharding);
  if (operands.size() > 1)
    if (const ruling kept = keep_cut(operands[0], place, mesh); !kept.ok()) return kept;
  return {result};
}

}  // namespace tessera::sharding
