// SPDX-License-Identifier: Apache-2.0
// Writing the nodes of a shard_map by value: its boundary, its casts and its collectives.
#pragma once

#include <tessera/graph/permutation.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/sharding/manual.hpp>

namespace tessera::graph {

/// A node of this very type, whatever its operand varies over.
constexpr value write_manual(value v, op code, const aval& type, std::initializer_list<std::uint64_t> attributes) {
  node n;
  n.code = code;
  n.type = type;
  n.operands[0] = v.id;
  int i = 0;
  for (std::uint64_t a : attributes) n.attribute[i++] = a;
  return {v.owner, v.owner->add(n)};
}

/// The block of an array, of type `local`.
constexpr value to_local(value v, const aval& local) { return write_manual(v, op::to_local, local, {}); }

/// The array of type `global` whose blocks are `v`.
constexpr value to_global(value v, const aval& global) { return write_manual(v, op::to_global, global, {}); }

constexpr value pcast(value v, const aval& type) { return v.type() == type ? v : write_manual(v, op::pcast, type, {}); }
constexpr value pcast(value v, axis_list axes, manual_state to) {
  return pcast(v, expect(sharding::pcast(v.type(), axes, to)));
}

/// How a collective sees its operand.
constexpr value collective_operand(value v, axis_list axes) {
  return pcast(v, expect(sharding::collective_operand(v.type(), axes)));
}

/// The second attribute is how blocks combine: a transform::combine.
constexpr value psum(value v, axis_list axes, std::uint64_t combine = 0) {
  const aval type = expect(sharding::psum(v.type(), axes, true));
  return write_manual(collective_operand(v, axes), op::psum, type, {axes, combine});
}

constexpr value gather_blocks(value v, axis_list axes, int d, manual_state to) {
  const aval type = expect(sharding::gather_blocks(v.type(), axes, d, to, v.mesh()));
  return write_manual(collective_operand(v, axes), op::gather_blocks, type, {axes, static_cast<std::uint64_t>(d)});
}

constexpr value scatter_blocks(value v, axis_list axes, int d) {
  const aval type = expect(sharding::scatter_blocks(v.type(), axes, d, v.mesh()));
  return write_manual(collective_operand(v, axes), op::scatter_blocks, type, {axes, static_cast<std::uint64_t>(d)});
}

/// Of an invarying value each device's own block: a slice at its place along the axes.
constexpr value take_block(value v, axis_list axes, int d) {
  const aval type = expect(sharding::split_blocks(v.type(), axes, d, v.mesh()));
  return write_manual(v, op::take_block, type, {axes, static_cast<std::uint64_t>(d)});
}

constexpr value exchange_blocks(value v, axis_list axes, int split, int concat) {
  const aval type = expect(sharding::exchange_blocks(v.type(), axes, split, concat, v.mesh()));
  return write_manual(collective_operand(v, axes), op::exchange_blocks, type,
                      {axes, static_cast<std::uint64_t>(split), static_cast<std::uint64_t>(concat)});
}

/// Where nobody sends, the result is 0.
constexpr value permute_blocks(value v, axis_list axes, const permutation& to) {
  const aval type = expect(sharding::permute_blocks(v.type(), axes));
  return write_manual(collective_operand(v, axes), op::permute_blocks, type, {axes, 0, to.words[0], to.words[1]});
}

}  // namespace tessera::graph
