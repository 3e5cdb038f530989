// SPDX-License-Identifier: Apache-2.0
// Sums that a loop collects: what each trip adds stays a sum over devices until the loop is over.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/graph.hpp>

namespace tessera::transform {

/// What a body adds to carry `j`, which nothing else reads, or -1 if that is not all that happens to the carry.
constexpr int summand(const graph::graph& body, int j) {
  const graph::node& made = body.at(body.outputs[static_cast<std::size_t>(j)].node);
  const int carry = body.parameters[static_cast<std::size_t>(j) + 1];
  if (made.code != graph::op::add) return -1;
  const int place = made.operands[0] == carry ? 0 : 1;
  if (made.operands[place] != carry || made.operands[1 - place] == carry || !body.type(carry).same_shape(made.type))
    return -1;
  int reads = 0;
  for (int i = 0; i < body.size(); ++i) graph::for_each_read(body, i, [&](int read) { reads += read == carry; });
  for (const graph::output& o : body.outputs) reads += o.node == carry;
  return reads == 1 ? made.operands[1 - place] : -1;
}

/// The axes over which node `id`, or what it is linear in, is at first a sum over devices: `pending[i]` are those of
/// node i. The nodes in between are appended to `chain`.
constexpr axis_set pending_below(const graph::graph& g, int id, const graph::list<axis_set>& pending,
                                 graph::list<int>& chain) {
  chain.push_back(id);
  if (pending[static_cast<std::size_t>(id)] != 0) return pending[static_cast<std::size_t>(id)];
  const graph::node& n = g.at(id);
  const std::size_t before = chain.size();
  switch (n.code) {
    case graph::op::neg:
    case graph::op::div:
    case graph::op::reshard:
    case graph::op::reshape:
    case graph::op::transpose: return pending_below(g, n.operands[0], pending, chain);
    case graph::op::mul:
      if (const axis_set found = pending_below(g, n.operands[0], pending, chain); found != 0) return found;
      chain.resize(before);
      return pending_below(g, n.operands[1], pending, chain);
    default: return 0;
  }
}

/// Makes the sum that a body collects in carry `j` one that is pending over some axes, if what it adds is at first. The
/// summand is written once more with such types, since others may need it reduced. Returns the axes.
constexpr axis_set leave_pending(graph::graph& body, int j, const graph::list<axis_set>& pending) {
  const int added = summand(body, j);
  if (added < 0) return 0;
  graph::list<int> chain;
  const axis_set axes = pending_below(body, added, pending, chain);
  const int carry = body.parameters[static_cast<std::size_t>(j) + 1];
  if (axes == 0 || body.type(carry).marked() || (body.type(carry).cut() & axes) != 0) return 0;
  for (int node : chain)
    if ((body.type(node).cut() & axes) != 0 || body.type(node).marked()) return 0;
  const auto as_pending = [&](graph::node n) {
    n.type.unreduced = axes;
    n.type.pending = combine::sum;
    return n;
  };
  int copy = -1;
  for (std::size_t i = chain.size(); i-- > 0;) {
    graph::node n = as_pending(body.at(chain[i]));
    for (int k = 0; k < n.operand_count(); ++k)
      if (i + 1 < chain.size() && n.operands[k] == chain[i + 1]) n.operands[k] = copy;
    copy = body.add(n);
  }
  body.at(carry) = as_pending(body.at(carry));
  graph::node sum = as_pending(body.at(body.outputs[static_cast<std::size_t>(j)].node));
  for (int k = 0; k < 2; ++k)
    if (sum.operands[k] == added) sum.operands[k] = copy;
  body.outputs[static_cast<std::size_t>(j)].node = body.add(sum);
  return axes;
}

}  // namespace tessera::transform
