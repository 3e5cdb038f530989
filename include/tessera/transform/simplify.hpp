// SPDX-License-Identifier: Apache-2.0
// Graph to smaller graph: equal nodes become one, identities and unused nodes vanish.
#pragma once

#include <tessera/graph/graph.hpp>
#include <tessera/transform/bodies.hpp>
#include <tessera/transform/simplify_layout.hpp>

#include <bit>

namespace tessera::transform {

using graph::op;

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}

constexpr std::uint64_t hash_of(const graph::node& n) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(n.code), static_cast<std::uint64_t>(n.type.type));
  for (int operand : n.operands) hash = hash << 20 ^ hash >> 44 ^ static_cast<std::uint64_t>(operand + 1);
  hash = mix(hash, std::bit_cast<std::uint64_t>(n.value));
  for (std::uint64_t a : n.attribute) hash = hash * 31 + a;
  for (int i = 0; i < n.type.rank; ++i)
    hash = (hash * 31 + static_cast<std::uint64_t>(n.type.dims[i].extent)) * 31 + n.type.dims[i].axes;
  return mix(hash, static_cast<std::uint64_t>(n.type.unreduced) << 32 |
                       static_cast<std::uint64_t>(n.type.reduced) << 16 | n.type.varying);
}

/// Whether two nodes compute the same; -0.0 is not 0.0.
constexpr bool same_node(const graph::node& a, const graph::node& b) {
  return a == b && std::bit_cast<std::uint64_t>(a.value) == std::bit_cast<std::uint64_t>(b.value);
}

/// Whether the node only passes its operand on.
constexpr bool is_identity(const graph::graph& g, const graph::node& n) {
  if (n.code == op::stop_gradient || n.code == op::name) return true;
  if (n.code == op::reshape || n.code == op::reshard || n.code == op::convert) return n.type == g.type(n.operands[0]);
  return false;
}

/// `x` as the element type keeps it.
constexpr double rounded(double x, dtype type) {
  return type == dtype::f32 ? static_cast<double>(static_cast<float>(x)) : x;
}

/// Whether sums, products and quotients of such numbers are finite and have all their digits in float32 and float64.
constexpr bool is_tame(double x) {
  const double magnitude = x < 0 ? -x : x;
  return x == 0 || (magnitude > 1e-18 && magnitude < 1e18);
}

/// Arithmetic of two floating-point constants is done here, with the rounding that the step would have. What could
/// overflow is left to the step: a constant expression has no infinities to give.
constexpr void fold_constants(const graph::graph& g, graph::node& n) {
  if (!is_floating(n.type.type) || is_sixteen_bit(n.type.type) || n.operand_count() != 2 ||
      !is(n.code, graph::op_kind::elementwise))
    return;
  const graph::node& a = g.at(n.operands[0]);
  const graph::node& b = g.at(n.operands[1]);
  if (a.code != op::constant || b.code != op::constant || !is_tame(a.value) || !is_tame(b.value)) return;
  const double x = rounded(a.value, n.type.type);
  const double y = rounded(b.value, n.type.type);
  graph::node folded;
  folded.code = op::constant;
  folded.type = n.type;
  switch (n.code) {
    case op::add: folded.value = rounded(x + y, n.type.type); break;
    case op::sub: folded.value = rounded(x - y, n.type.type); break;
    case op::mul: folded.value = rounded(x * y, n.type.type); break;
    case op::div:
      if (y == 0) return;
      folded.value = rounded(x / y, n.type.type);
      break;
    default: return;
  }
  n = folded;
}

/// A reshape of a reshape is one reshape.
constexpr void skip_inner_reshape(const graph::graph& g, graph::node& n) {
  if (n.code == op::reshape && g.at(n.operands[0]).code == op::reshape) n.operands[0] = g.at(n.operands[0]).operands[0];
}

/// Which nodes an output, or a check, depends on.
constexpr graph::list<char> used_nodes(const graph::graph& g) {
  graph::list<char> used(g.nodes.size(), 0);
  for (const graph::output& out : g.outputs) used[static_cast<std::size_t>(out.node)] = 1;
  for (int p : g.parameters) used[static_cast<std::size_t>(p)] = 1;
  for (int i = g.size() - 1; i >= 0; --i) {
    const graph::node& n = g.at(i);
    if (n.code == op::check_range || (n.code == op::control && checks_inside(g, n)))
      used[static_cast<std::size_t>(i)] = 1;
    if (!used[static_cast<std::size_t>(i)]) continue;
    const int operands = n.operand_count();
    for (int k = 0; k < operands; ++k) used[static_cast<std::size_t>(n.operands[k])] = 1;
  }
  return used;
}

/// Dead code elimination: what neither an output nor a check needs is dropped. Parameters stay.
constexpr graph::graph eliminate_dead(graph::graph g) {
  const graph::list<char> used = used_nodes(g);
  bool all = g.bodies.empty();
  for (char u : used) all = all && u != 0;
  if (all) return g;
  graph::list<int> place(g.nodes.size(), -1);
  graph::graph result;
  result.mesh = g.mesh;
  result.nodes.reserve(g.nodes.size());
  for (int i = 0; i < g.size(); ++i) {
    if (!used[static_cast<std::size_t>(i)]) continue;
    graph::node n = g.at(i);
    if (n.code == op::control) take_bodies(g, result, n);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    place[static_cast<std::size_t>(i)] = result.add(n);
    if (n.code == op::parameter) result.parameters.push_back(result.size() - 1);
  }
  for (const graph::output& out : g.outputs)
    result.outputs.push_back({place[static_cast<std::size_t>(out.node)], out.alias});
  return result;
}

/// Common subexpression elimination, and identities replaced by what they pass on. One hash look-up a node; what nobody
/// uses is not looked at.
constexpr graph::graph merge_equal(const graph::graph& g) {
  std::size_t slots = 16;
  while (slots < 2 * g.nodes.size()) slots *= 2;
  const graph::list<char> used = used_nodes(g);
  graph::list<int> table(slots, -1);
  graph::list<int> place(g.nodes.size(), -1);
  graph::graph result;
  result.mesh = g.mesh;
  result.bodies = g.bodies;
  result.nodes.reserve(g.nodes.size());
  for (int i = 0; i < g.size(); ++i) {
    if (!used[static_cast<std::size_t>(i)]) continue;
    graph::node n = g.at(i);
    if (const int same = graph::passed_on(g, n); same >= 0) {
      place[static_cast<std::size_t>(i)] = place[static_cast<std::size_t>(same)];
      continue;
    }
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    if (const int piece = skip_updates(result, n); piece >= 0) {
      place[static_cast<std::size_t>(i)] = piece;
      continue;
    }
    join_updates(result, n);
    skip_inner_reshape(result, n);
    fold_constants(result, n);
    if (is_identity(result, n)) {
      place[static_cast<std::size_t>(i)] = n.operands[0];
      continue;
    }
    std::size_t slot = hash_of(n) >> 32 & (slots - 1);  // high bits are mixed best
    while (table[slot] >= 0 && !same_node(result.at(table[slot]), n)) slot = (slot + 1) & (slots - 1);
    if (table[slot] < 0) {
      table[slot] = result.add(n);
      if (n.code == op::parameter) result.parameters.push_back(result.size() - 1);
    }
    place[static_cast<std::size_t>(i)] = table[slot];
  }
  for (const graph::output& out : g.outputs)
    result.outputs.push_back({place[static_cast<std::size_t>(out.node)], out.alias});
  return result;
}

/// Both; in bodies too, once what they need not compute is gone.
constexpr graph::graph simplify(const graph::graph& g) {
  graph::graph result = eliminate_dead(merge_equal(g));
  if (!result.bodies.empty()) result = eliminate_dead(prune_control(result));
  for (graph::graph& body : result.bodies) body = simplify(body);
  return result;
}

}  // namespace tessera::transform
