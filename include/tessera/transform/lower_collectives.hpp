// SPDX-License-Identifier: Apache-2.0
// Steps of collectives.
#pragma once

#include <tessera/transform/lowering.hpp>

#include <algorithm>

namespace tessera::transform {

/// Members of a group are operands of one step.
constexpr void lower_all_reduce(lowering& pass, const graph::list<int>& members) {
  graph::step s;
  s.kind = graph::step_kind::all_reduce;
  s.first = static_cast<int>(pass.out.accesses.size());
  s.sources = s.results = static_cast<int>(members.size());
  const auto axes = static_cast<axis_set>(pass.g.at(members[0]).attribute[0]);
  for (int i = 0; i < pass.g.mesh.rank; ++i)
    if (axes & bit_of(i)) s.axes = axis_append(s.axes, i);
  s.sizes[0] = static_cast<std::int64_t>(pass.g.at(members[0]).attribute[1]);
  for (int id : members) {
    pass.out.accesses.push_back({pass.buffer(pass.g.at(id).operands[0])});
    s.bytes += pass.g.type(id).bytes();
  }
  for (int id : members) pass.out.accesses.push_back({pass.buffer(id)});
  pass.out.steps.push_back(s);
}

/// An all-gather or a reduce-scatter: outer, block, inner, kind.
constexpr void lower_blocks(lowering& pass, int id, graph::step_kind kind) {
  graph::step s = pass.plain_step(kind, id);
  const graph::node& n = pass.g.at(id);
  s.axes = static_cast<axis_list>(n.attribute[0]);
  const auto d = static_cast<int>(n.attribute[1]);
  lowering::around(kind == graph::step_kind::all_gather ? pass.g.type(n.operands[0]) : n.type, d, d, s.sizes, 0);
  s.sizes[3] = static_cast<std::int64_t>(n.attribute[2]);
  s.bytes = pass.g.type(n.operands[0]).bytes();
  pass.out.steps.push_back(s);
}

constexpr void lower_all_to_all(lowering& pass, int id) {
  graph::step s = pass.plain_step(graph::step_kind::all_to_all, id);
  const graph::node& n = pass.g.at(id);
  const aval& type = pass.g.type(n.operands[0]);
  s.axes = static_cast<axis_list>(n.attribute[0]);
  const auto split = static_cast<int>(n.attribute[1]);
  const auto joined = static_cast<int>(n.attribute[2]);
  const int first = std::min(split, joined);
  const int second = std::max(split, joined);
  for (int i = 0; i < 5; ++i) s.sizes[i] = 1;
  for (int d = 0; d < type.rank; ++d)
    s.sizes[d < first ? 0 : d == first ? 1 : d < second ? 2 : d == second ? 3 : 4] *= type.dims[d].extent;
  if (split == joined) {
    const std::int64_t pieces = devices_along(s.axes, pass.g.mesh);
    s.sizes[4] *= s.sizes[1] / pieces;
    s.sizes[1] = pieces;
  }
  s.sizes[5] = split <= joined;
  s.bytes = type.bytes();
  pass.out.steps.push_back(s);
}

constexpr void lower_permute(lowering& pass, int id) {
  graph::step s = pass.plain_step(graph::step_kind::collective_permute, id);
  s.axes = static_cast<axis_list>(pass.g.at(id).attribute[0]);
  for (int i = 0; i < 3; ++i) s.sizes[i] = static_cast<std::int64_t>(pass.g.at(id).attribute[1 + i]);
  s.bytes = pass.g.type(id).bytes();
  pass.out.steps.push_back(s);
}

/// Appends the step of a collective, or of a group of all-reduces.
constexpr void lower_collective(lowering& pass, const graph::list<int>& members) {
  const int id = members[0];
  switch (pass.g.at(id).code) {
    case op::all_reduce: return lower_all_reduce(pass, members);
    case op::all_gather: return lower_blocks(pass, id, graph::step_kind::all_gather);
    case op::reduce_scatter: return lower_blocks(pass, id, graph::step_kind::reduce_scatter);
    case op::all_to_all: return lower_all_to_all(pass, id);
    default: return lower_permute(pass, id);
  }
}

}  // namespace tessera::transform
