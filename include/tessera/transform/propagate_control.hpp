// SPDX-License-Identifier: Apache-2.0
// Automatic axes in loops and branches: a body's parameters lie as what they stand for, a carry as it comes back.
#pragma once

#include <tessera/transform/propagate.hpp>

namespace tessera::transform {

using graph::value;

/// A body whose parameters lie as `types` say, and how its outputs then lie.
struct propagated_body {
  graph::graph body{};
  graph::list<aval> outputs{};
};

/// `a` cut by what it and `b` have in common, dimension by dimension.
constexpr aval common_cuts(aval a, const aval& b) {
  for (int d = 0; d < a.rank; ++d) {
    axis_list both = 0;
    for (int i = 0; i < axis_count(a.dims[d].axes) && i < axis_count(b.dims[d].axes); ++i) {
      if (axis_at(a.dims[d].axes, i) != axis_at(b.dims[d].axes, i)) break;
      both = axis_append(both, axis_at(a.dims[d].axes, i));
    }
    a.dims[d].axes = both;
  }
  return a;
}

/// A control node while it is propagated into.
struct control_propagator {
  propagator& pass;
  int id;
  graph::control c;
  graph::list<int> arguments{};
  graph::list<aval> types{};    ///< of the bodies' parameters behind the number of the trip
  graph::list<aval> results{};  ///< of the bodies' outputs

  constexpr control_propagator(propagator& p, int node)
      : pass(p), id(node), c(graph::control_of(p.from.at(node))), arguments(graph::arguments_of(p.from, node)) {
    for (std::size_t i = static_cast<std::size_t>(c.leading()); i < arguments.size(); ++i)
      types.push_back(seen_by_body(i, pass.result.type(pass.placed(arguments[i]))));
  }

  constexpr const graph::graph& body(int b) const { return pass.from.bodies[static_cast<std::size_t>(c.body + b)]; }
  /// The trips of a stacked array stay whole.
  constexpr aval seen_by_body(std::size_t argument, const aval& type) const {
    return c.is_stacked(argument) ? graph::slice_of(type) : type;
  }
  constexpr bool asks(int b) const { return c.kind == graph::control_kind::while_loop && b == 0; }

  constexpr propagated_body propagate_body(int b) const {
    const graph::graph& old = body(b);
    propagator inner(old, types, pass.autos[static_cast<std::size_t>(id)]);
    for (graph::graph& nested : inner.result.bodies) nested = propagate(nested);
    inner.run_nodes();
    propagated_body made;
    for (const graph::output& out : old.outputs)
      made.outputs.push_back(asks(b) ? old.type(out.node) : inner.result.type(inner.placed(out.node)));
    for (std::size_t o = 0; o < old.outputs.size(); ++o) {
      const aval& type = o < results.size() && !asks(b) ? results[o] : made.outputs[o];
      const value v{&inner.result, inner.placed(old.outputs[o].node)};
      inner.result.outputs.push_back({graph::reshard(v, type).id, old.outputs[o].alias});
    }
    made.body = std::move(inner.result);
    return made;
  }

  /// Bodies whose outputs agree with each other, and with the carries that come in. Each turn takes axes away, so it
  /// ends.
  constexpr graph::list<graph::graph> bodies() {
    graph::list<graph::graph> made;
    for (bool stable = false; !stable;) {
      stable = true;
      made.clear();
      for (int b = 0; b < c.bodies(); ++b) {
        propagated_body one = propagate_body(b);
        made.push_back(std::move(one.body));
        if (asks(b)) continue;
        if (results.empty()) results = one.outputs, stable = false;
        for (std::size_t o = 0; o < results.size(); ++o) agree(results[o], one.outputs[o], stable);
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(c.carries); ++i) {
        agree(results[i], types[i], stable);
        agree(types[i], results[i], stable);
      }
    }
    return made;
  }
  static constexpr void agree(aval& type, const aval& with, bool& stable) {
    const aval both = common_cuts(type, with);
    if (both == type) return;
    type = both;
    stable = false;
  }

  /// Arguments as the bodies have them.
  constexpr graph::list<int> nodes() const {
    graph::list<int> ids;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const value v{&pass.result, pass.placed(arguments[i])};
      if (i < static_cast<std::size_t>(c.leading()) || c.is_stacked(i)) ids.push_back(v.id);
      else ids.push_back(graph::reshard(v, types[i - static_cast<std::size_t>(c.leading())]).id);
    }
    return ids;
  }

  constexpr void run() {
    const graph::list<graph::graph> made = bodies();
    for (std::size_t b = 0; b < made.size(); ++b) pass.result.bodies[static_cast<std::size_t>(c.body) + b] = made[b];
    const int node = graph::add_control(pass.result, c, nodes());
    pass.result.at(node).policy = pass.from.at(id).policy;
    pass.place[static_cast<std::size_t>(id)] = node;
    for (int i = id + 1; i < pass.from.size(); ++i) {
      const graph::node& n = pass.from.at(i);
      if (n.code != op::result || n.operands[0] != id) continue;
      const aval& one = results[static_cast<std::size_t>(n.attribute[0])];
      const bool trips = c.kind == graph::control_kind::scan && static_cast<int>(n.attribute[0]) >= c.carries;
      const aval type = trips ? graph::stacked(one, c.trips) : one;
      const int made_result = graph::add_result(pass.result, node, static_cast<int>(n.attribute[0]), type);
      pass.place[static_cast<std::size_t>(i)] = made_result;
      if (type == n.type) pass.original[static_cast<std::size_t>(i)] = made_result;
    }
  }
};

constexpr void propagator::control(int id) { control_propagator(*this, id).run(); }

}  // namespace tessera::transform
