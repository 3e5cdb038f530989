// SPDX-License-Identifier: Apache-2.0
// Numbers of devices and of distinct blocks: a value that differs over a set of mesh axes has one block for each place
// along them, however many devices there are.
#pragma once

#include <tessera/core/aval.hpp>

namespace tessera {

/// The coordinate of a device along a mesh axis; devices are numbered row-major over the axes.
constexpr std::int64_t coordinate(std::int64_t device, int axis, const mesh_value& mesh) {
  for (int i = mesh.rank - 1; i > axis; --i) device /= mesh.size(i);
  return device % mesh.size(axis);
}

/// The number of the block, among those that differ over `varying`, that a device holds.
constexpr std::int64_t shard_of_device(std::int64_t device, axis_set varying, const mesh_value& mesh) {
  std::int64_t shard = 0;
  for (int i = 0; i < mesh.rank; ++i)
    if (varying & bit_of(i)) shard = shard * mesh.size(i) + coordinate(device, i, mesh);
  return shard;
}

/// The first device that holds block number `shard`.
constexpr std::int64_t device_of_shard(std::int64_t shard, axis_set varying, const mesh_value& mesh) {
  std::int64_t device = 0;
  std::int64_t stride = 1;
  for (int i = mesh.rank - 1; i >= 0; --i) {
    if (varying & bit_of(i)) {
      device += shard % mesh.size(i) * stride;
      shard /= mesh.size(i);
    }
    stride *= mesh.size(i);
  }
  return device;
}

/// The place of a device's block along a dimension cut by `axes`, counted in blocks, major axis first.
constexpr std::int64_t block_index(std::int64_t device, axis_list axes, const mesh_value& mesh) {
  std::int64_t index = 0;
  for (int i = 0; i < axis_count(axes); ++i)
    index = index * mesh.size(axis_at(axes, i)) + coordinate(device, axis_at(axes, i), mesh);
  return index;
}

/// The device found from `device` by going to place `index` along `axes`, major axis first.
constexpr std::int64_t device_at(std::int64_t device, axis_list axes, std::int64_t index, const mesh_value& mesh) {
  for (int i = axis_count(axes) - 1; i >= 0; --i) {
    const int axis = axis_at(axes, i);
    std::int64_t stride = 1;
    for (int j = mesh.rank - 1; j > axis; --j) stride *= mesh.size(j);
    device += (index % mesh.size(axis) - coordinate(device, axis, mesh)) * stride;
    index /= mesh.size(axis);
  }
  return device;
}

}  // namespace tessera
