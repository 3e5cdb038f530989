// SPDX-License-Identifier: Apache-2.0
// Steps of nodes that take parts of arrays and put arrays together.
#pragma once

#include <tessera/graph/gather.hpp>
#include <tessera/graph/windows.hpp>
#include <tessera/transform/lowering.hpp>

namespace tessera::transform {

/// The piece goes to its place in the result. The base comes first among the sources, if it has elements to keep; where
/// it lies elsewhere than the result it is copied, see count_copied_bases.
constexpr void lower_update_slice(lowering& pass, int id) {
  graph::step s;
  s.kind = graph::step_kind::update_slice;
  const graph::node& n = pass.g.at(id);
  const aval& piece = pass.g.type(n.operands[1]);
  s.varying = n.type.varying;
  s.first = static_cast<int>(pass.out.accesses.size());
  s.results = 1;
  s.sources = 1;
  if (pass.g.at(n.operands[0]).code != op::empty) {
    pass.out.accesses.push_back({pass.buffer(n.operands[0])});
    ++s.sources;
  }
  pass.out.accesses.push_back(pass.access_of(n.operands[1], piece));
  std::int64_t strides[max_rank]{};
  row_major(n.type, strides);
  const sharding::slices taken = graph::slices_of(n, piece);
  graph::access to{pass.buffer(id)};
  for (int d = 0; d < piece.rank; ++d) {
    to.strides[d] = strides[d] * taken.of[d].stride;
    to.offset += strides[d] * taken.of[d].start;
  }
  pass.out.accesses.push_back(to);
  s.rank = pass.collapse(piece, s.sizes, static_cast<std::size_t>(s.first));
  s.bytes = 2 * piece.bytes();
  pass.out.steps.push_back(s);
}

constexpr void lower_dynamic(lowering& pass, int id, graph::step_kind kind, const aval& whole, const aval& part) {
  graph::step s = pass.plain_step(kind, id);
  const auto d = static_cast<int>(pass.g.at(id).attribute[0]);
  std::int64_t sizes[max_rank]{};
  pass.around(whole, d, d, sizes, 0);
  s.sizes[0] = sizes[0], s.sizes[1] = sizes[1], s.sizes[2] = part.dims[d].extent, s.sizes[3] = sizes[2];
  s.bytes = 2 * part.bytes();
  pass.out.steps.push_back(s);
}

/// Sizes: outer, extents along two windowed dimensions (the first is 1 if there is one), inner; then for either of them
/// how many windows and their extent, and how far apart windows and their elements are, in halves of a number.
constexpr void lower_overlap_add(lowering& pass, int id) {
  graph::step s = pass.plain_step(graph::step_kind::overlap_add, id);
  const aval& from = pass.g.type(pass.g.at(id).operands[0]);
  const aval& type = pass.g.type(id);
  const graph::windowing how = graph::windowing_of(pass.g.at(id), from);
  const auto both = [](std::int64_t a, std::int64_t b) { return a | b << 32; };
  const int last = how.of[how.count - 1].dim;
  const int first = how.of[0].dim;
  s.sizes[0] = s.sizes[1] = s.sizes[3] = 1;
  for (int d = 0; d < first; ++d) s.sizes[0] *= type.dims[d].extent;
  for (int d = last + 1; d < type.rank; ++d) s.sizes[3] *= type.dims[d].extent;
  s.sizes[4] = s.sizes[6] = both(1, 1);
  for (int w = 0; w < how.count; ++w) {
    const int at = 2 - how.count + w;
    s.sizes[1 + at] = type.dims[how.of[w].dim].extent;
    s.sizes[4 + at] = both(from.dims[how.of[w].dim].extent, how.of[w].extent);
    s.sizes[6 + at] = both(how.of[w].stride, how.of[w].dilation);
  }
  s.flops = from.size();
  pass.add_step(s);
}

constexpr void lower_gather(lowering& pass, int id, graph::step_kind kind) {
  graph::step s = pass.plain_step(kind, id);
  const graph::node& n = pass.g.at(id);
  const sharding::indexing how = graph::indexing_of(n);
  const aval& array = pass.g.type(n.operands[0]);
  const aval& indices = pass.g.type(n.operands[1]);
  const int batch = how.pointwise ? how.axis : how.batch;
  s.sizes[0] = s.sizes[1] = s.sizes[3] = s.sizes[4] = 1;
  for (int d = 0; d < array.rank; ++d)
    if (d != how.axis) s.sizes[d < batch ? 0 : d < how.axis ? 1 : 4] *= array.dims[d].extent;
  s.sizes[2] = array.dims[how.axis].extent;
  for (int d = batch; d < (how.pointwise ? batch + 1 : indices.rank); ++d) s.sizes[3] *= indices.dims[d].extent;
  s.sizes[5] = static_cast<std::int64_t>(n.attribute[0]);
  s.sizes[6] = static_cast<std::int64_t>(n.attribute[2]);
  s.axes = static_cast<axis_list>(n.attribute[1]);
  const bool gathers = kind == graph::step_kind::gather;
  const aval& chosen = gathers ? n.type : pass.g.type(n.operands[2]);
  s.bytes = indices.bytes() + (gathers ? 2 : 3) * chosen.bytes();
  if (!gathers && how.kind != sharding::scatter_kind::set) s.flops = chosen.size();
  pass.out.steps.push_back(s);
}

constexpr void lower_movement(lowering& pass, int id) {
  using graph::step_kind;
  const graph::node& n = pass.g.at(id);
  switch (n.code) {
    case op::update_slice: return lower_update_slice(pass, id);
    case op::overlap_add: return lower_overlap_add(pass, id);
    case op::dynamic_slice:
      return lower_dynamic(pass, id, step_kind::dynamic_slice, pass.g.type(n.operands[0]), n.type);
    case op::dynamic_update:
      return lower_dynamic(pass, id, step_kind::dynamic_update, n.type, pass.g.type(n.operands[1]));
    default: return lower_gather(pass, id, n.code == op::gather ? step_kind::gather : step_kind::scatter);
  }
}

}  // namespace tessera::transform
