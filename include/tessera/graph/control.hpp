// SPDX-License-Identifier: Apache-2.0
// Nodes that run bodies: loops and branches, their arguments and results.
#pragma once

#include <tessera/graph/graph.hpp>

namespace tessera::graph {

/// What a control node does. scan: `trips` times the body, over carries and slices of stacked arrays; while_loop: the
/// body as long as the condition, the body after it, gives true; branch: the first body if the predicate is true, else
/// the second; call: the body once, as a part of the program whose values are kept for a gradient as the node's policy
/// says. custom_gradient: nothing, but its body is run where a gradient is asked for: its arguments are `carries`
/// inputs of a function, `stacked` results of it, `trips` values kept for the body, and what that captures; parameters
/// of the body are a number without meaning, the values kept, cotangents of the results and what is captured, its
/// outputs the cotangents of the inputs (an integer where there is none). Result i is result i of the function.
enum class control_kind : std::uint8_t { scan, while_loop, branch, call, custom_gradient };

/// A control node in words. Its arguments are, in order: the predicate of a branch; the carries; the stacked arrays
/// (one slice of the leading dimension a trip); what bodies capture. A body's parameters are the number of the trip
/// (int32) and then one for each argument but the predicate; its outputs are the carries, then slices of stacked
/// results. The control node's results are the carries after the last trip, then the stacked results.
struct control {
  control_kind kind = control_kind::scan;
  int body = 0;
  std::int64_t trips = 1;
  int carries = 0;
  int stacked = 0;
  bool reverse = false;

  constexpr int bodies() const { return kind == control_kind::while_loop || kind == control_kind::branch ? 2 : 1; }
  /// Which carry node `id` of a body is as it comes in, or -1.
  constexpr int carry_at(const graph& inside, int id) const {
    if (inside.at(id).code != op::parameter) return -1;
    const auto place = static_cast<int>(inside.at(id).attribute[0]);
    return place >= 1 && place <= carries ? place - 1 : -1;
  }
  constexpr bool is_carry(const graph& inside, int id) const { return carry_at(inside, id) >= 0; }

  /// Whether an argument of a scan is handed to its body slice by slice.
  constexpr bool is_stacked(std::size_t argument) const {
    return kind == control_kind::scan && argument >= static_cast<std::size_t>(carries) &&
           argument < static_cast<std::size_t>(carries + stacked);
  }

  /// Arguments before the first one that bodies see.
  constexpr int leading() const { return kind == control_kind::branch ? 1 : 0; }
};

constexpr control control_of(const node& n) {
  return {static_cast<control_kind>(n.attribute[3] & 255U), static_cast<int>(n.attribute[0]),
          static_cast<std::int64_t>(n.attribute[1]),        static_cast<int>(n.attribute[2] & 0xffffffffU),
          static_cast<int>(n.attribute[2] >> 32),           (n.attribute[3] & 256U) != 0};
}

/// The arguments of control node `id`.
constexpr list<int> arguments_of(const graph& g, int id) {
  list<int> result;
  for (int at = g.at(id).operands[0]; g.at(at).code == op::argument; at = g.at(at).operands[1])
    result.push_back(g.at(at).operands[0]);
  return result;
}

/// Writes the chain of arguments and the control node; returns the node.
constexpr int add_control(graph& g, const control& c, const list<int>& arguments) {
  node chain;
  chain.code = op::no_arguments;
  int last = g.add(chain);
  for (std::size_t i = arguments.size(); i-- > 0;) {
    chain = {};
    chain.code = op::argument;
    chain.operands[0] = arguments[i];
    chain.operands[1] = last;
    last = g.add(chain);
  }
  node n;
  n.code = op::control;
  n.operands[0] = last;
  n.attribute[0] = static_cast<std::uint64_t>(c.body);
  n.attribute[1] = static_cast<std::uint64_t>(c.trips);
  n.attribute[2] = static_cast<std::uint64_t>(c.carries) | static_cast<std::uint64_t>(c.stacked) << 32;
  n.attribute[3] = static_cast<std::uint64_t>(c.kind) | (c.reverse ? 256U : 0U);
  return g.add(n);
}

/// Result number `index` of control node `id`.
constexpr int add_result(graph& g, int id, int index, const aval& type) {
  node n;
  n.code = op::result;
  n.type = type;
  n.operands[0] = id;
  n.attribute[0] = static_cast<std::uint64_t>(index);
  return g.add(n);
}

/// `trips` arrays of type `slice` side by side along a new leading dimension.
constexpr aval stacked(const aval& slice, std::int64_t trips) {
  aval whole = slice;
  for (int d = slice.rank; d > 0; --d) whole.dims[d] = slice.dims[d - 1];
  whole.dims[0] = {trips, 0};
  ++whole.rank;
  return whole;
}

/// One of the arrays that `whole` is made of along its leading dimension.
constexpr aval slice_of(const aval& whole) {
  aval slice = whole;
  for (int d = 0; d + 1 < whole.rank; ++d) slice.dims[d] = whole.dims[d + 1];
  slice.dims[--slice.rank] = {};
  return slice;
}

/// The type of result `index` of a control node whose (first) body is `body`.
constexpr aval result_type(const control& c, const graph& body, int index) {
  const aval& type = body.type(body.outputs[static_cast<std::size_t>(index)].node);
  return index < c.carries || c.kind != control_kind::scan ? type : stacked(type, c.trips);
}

/// The node that result node `n` of a custom_gradient stands for, or -1 of another one.
constexpr int passed_on(const graph& g, const node& n) {
  if (n.code != op::result) return -1;
  const control c = control_of(g.at(n.operands[0]));
  if (c.kind != control_kind::custom_gradient) return -1;
  return arguments_of(g, n.operands[0])[static_cast<std::size_t>(c.carries) + n.attribute[0]];
}

/// Calls f(operand) for every node that node `id` reads; the arguments of a control node are its operands.
template <class F>
constexpr void for_each_read(const graph& g, int id, F f) {
  const node& n = g.nodes.first[id];
  if (n.code == op::control) {
    for (int argument : arguments_of(g, id)) f(argument);
  } else if (n.code != op::argument) {
    const int operands = op_table[static_cast<int>(n.code)].operands;
    for (int k = 0; k < operands; ++k) f(n.operands[k]);
  }
}

}  // namespace tessera::graph
