// SPDX-License-Identifier: Apache-2.0
// Graph to graph: sums and products of 16-bit numbers are kept in float32, and rounded when they are done.
#pragma once

#include <tessera/graph/graph.hpp>

namespace tessera::transform {

using graph::op;

/// How an operation treats 16-bit numbers: element by element, rounding each result; or moved as they are; or read as
/// they are and summed in float32; or all in float32.
enum class small_numbers : std::uint8_t { as_they_are, read, widened };

constexpr small_numbers treatment(op code) {
  switch (graph::about(code).kind) {
    case graph::op_kind::contraction:
    case graph::op_kind::reduction: return small_numbers::read;
    case graph::op_kind::rows: return small_numbers::widened;
    default:
      return code == op::scatter || code == op::overlap_add ? small_numbers::widened : small_numbers::as_they_are;
  }
}

constexpr bool has_sixteen_bits(const graph::graph& g) {
  for (const graph::node& n : g.nodes)
    if (is_sixteen_bit(n.type.type)) return true;
  for (const graph::graph& body : g.bodies)
    if (has_sixteen_bits(body)) return true;
  return false;
}

/// The state of one pass: the graph so far, and for each old node its new one.
struct widening {
  const graph::graph& from;
  graph::graph result{};
  graph::list<int> place{};

  constexpr explicit widening(const graph::graph& g) : from(g) {
    result.mesh = g.mesh;
    result.bodies = g.bodies;
    result.nodes.reserve(g.nodes.size());
    place.resize(g.nodes.size(), -1);
  }

  constexpr int converted(int node, dtype to) {
    graph::node n;
    n.code = op::convert;
    n.type = result.type(node);
    n.type.type = to;
    n.operands[0] = node;
    return result.add(n);
  }

  /// The 16-bit array that a node converts to float32, or -1.
  constexpr int narrow_source(int node) const {
    const graph::node& n = result.at(node);
    const bool widens = n.code == op::convert && n.type.type == dtype::f32;
    return widens && is_sixteen_bit(result.type(n.operands[0]).type) ? n.operands[0] : -1;
  }

  /// An operation that sums in float32 anyway reads 16-bit numbers, not their copies in float32.
  constexpr void read_narrow(graph::node& n) const {
    const int operands = n.operand_count();
    for (int k = 0; k < operands; ++k) {
      const int source = narrow_source(n.operands[k]);
      if (source < 0 || result.type(source).type != result.type(narrow_source(n.operands[0])).type) return;
    }
    for (int k = 0; k < operands; ++k) n.operands[k] = narrow_source(n.operands[k]);
  }

  constexpr int add(graph::node n) {
    const dtype own = n.type.type;
    const small_numbers how = treatment(n.code);
    if (how == small_numbers::read && own == dtype::f32) read_narrow(n);
    if (how == small_numbers::widened)
      for (int k = 0; k < n.operand_count(); ++k)
        if (is_sixteen_bit(result.type(n.operands[k]).type)) n.operands[k] = converted(n.operands[k], dtype::f32);
    if (how == small_numbers::as_they_are || !is_sixteen_bit(own)) return result.add(n);
    n.type.type = dtype::f32;
    return converted(result.add(n), own);
  }

  constexpr void run() {
    for (int i = 0; i < from.size(); ++i) {
      graph::node n = from.at(i);
      for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
      place[static_cast<std::size_t>(i)] = add(n);
      if (n.code == op::parameter) result.parameters.push_back(result.size() - 1);
    }
    for (const graph::output& out : from.outputs)
      result.outputs.push_back({place[static_cast<std::size_t>(out.node)], out.alias});
  }
};

/// Elementwise operations round each result to its type; products, sums and what is computed along an axis are float32
/// until they are complete, also in collectives that complete them.
constexpr graph::graph widen(const graph::graph& g) {
  if (!has_sixteen_bits(g)) return g;
  widening pass(g);
  pass.run();
  for (graph::graph& body : pass.result.bodies) body = widen(body);
  return pass.result;
}

}  // namespace tessera::transform
