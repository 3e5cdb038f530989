// SPDX-License-Identifier: Apache-2.0
// Writing nodes that read or write elements chosen by integers.
#pragma once

#include <tessera/graph/value.hpp>
#include <tessera/sharding/gather.hpp>

namespace tessera::graph {

/// Gather and scatter nodes: the first attribute says how, the second one which axes cut the indexed dimension (after
/// partitioning), the third one its extent in the whole array.
constexpr std::uint64_t pack_indexing(const sharding::indexing& how) {
  return static_cast<std::uint64_t>(how.axis) | static_cast<std::uint64_t>(how.batch) << 8 |
         static_cast<std::uint64_t>(how.pointwise) << 16 | static_cast<std::uint64_t>(how.mode) << 20 |
         static_cast<std::uint64_t>(how.kind) << 24;
}
constexpr sharding::indexing indexing_of(const node& n) {
  const std::uint64_t packed = n.attribute[0];
  return {static_cast<int>(packed & 255U), static_cast<int>(packed >> 8 & 255U), (packed >> 16 & 1U) != 0,
          static_cast<sharding::index_mode>(packed >> 20 & 15U),
          static_cast<sharding::scatter_kind>(packed >> 24 & 15U)};
}

constexpr value set_indexing(value made, const sharding::indexing& how, std::int64_t extent) {
  node& n = made.owner->at(made.id);
  n.attribute[0] = pack_indexing(how);
  n.attribute[2] = static_cast<std::uint64_t>(extent);
  return made;
}

/// The elements of `array` that `indices` name. Dimensions are cut as `type` says; the indexed one may be cut by other
/// axes: then each device reads what it has.
constexpr value gather(value array, value indices, const sharding::indexing& how, const aval& type) {
  const std::int64_t extent = array.type().dims[how.axis].extent;
  return set_indexing(write(array.owner, op::gather, type, {array.id, indices.id}), how, extent);
}

/// `array` with the elements that `indices` name changed by `updates`, in the order of the indices.
constexpr value scatter(value array, value indices, value updates, const sharding::indexing& how) {
  const aval type = array.type();
  return set_indexing(write(array.owner, op::scatter, type, {array.id, indices.id, updates.id}), how,
                      type.dims[how.axis].extent);
}

/// `indices`, checked while the step runs to be in [-extent, extent).
constexpr value check_indices(value indices, std::int64_t extent) {
  const value checked = write(indices.owner, op::check_range, indices.type(), {indices.id});
  indices.owner->at(checked.id).attribute[0] = static_cast<std::uint64_t>(-extent);
  return checked;
}

}  // namespace tessera::graph
