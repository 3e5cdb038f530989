// SPDX-License-Identifier: Apache-2.0
// Programs of one operation whose operands are unreduced and reduced in all ways, compared with the one-device program.
#pragma once

#include "runtime/mesh_independence.hpp"

#include <tessera/analysis/summary.hpp>

#include <catch2/catch.hpp>

#include <cmath>

namespace runtime_test {

enum class mark { none, reduced, unreduced };

inline axis_list list_of(axis_set set, const mesh_value& mesh) {
  axis_list list = 0;
  for (int axis = 0; axis < mesh.rank; ++axis)
    if (set & bit_of(axis)) list = axis_append(list, axis);
  return list;
}

/// A pending sum whose parts are all different: a parameter with one more dimension, cut by the axes, summed along it.
inline value sum_of_parts(graph::graph& g, const aval& type, axis_set axes) {
  aval parts = type;
  parts.rank = type.rank + 1;
  for (int d = type.rank; d > 0; --d) parts.dims[d] = type.dims[d - 1];
  parts.dims[0] = {devices_in(axes, g.mesh), list_of(axes, g.mesh)};
  const value p{&g, g.add_parameter(parts)};
  aval sum = type;
  sum.unreduced = axes;
  const spec_value spec = graph::spec_of(sum);
  return graph::reduce(op::reduce_sum, p, 1, false, &spec);
}

inline value marked_input(graph::graph& g, aval type, mark m, axis_set axes) {
  if (m == mark::unreduced) return sum_of_parts(g, type, axes);
  if (m == mark::reduced) type.reduced = axes;
  return {&g, g.add_parameter(type)};
}

struct built {
  program p{};
  value y{};
  bool legal = false;
  std::vector<double> scale{};  ///< by parameter: how its numbers are drawn is divided by this
};

/// The operation with marked operands, the loss sum(y w) with w pending where y is reduced and the other way round, the
/// gradients of all operands.
inline built build_marked(const op_case& c, const mesh_value& mesh, std::span<const mark> marks, axis_set axes,
                          bool cut) {
  built b;
  b.p.g.mesh = mesh;
  graph::graph& g = b.p.g;
  std::vector<value> inputs;
  std::vector<int> wrt;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    aval type = type_of(c.inputs[i], dtype::f64);
    const axis_list rest = list_of(static_cast<axis_set>(((1U << mesh.rank) - 1) & ~axes), mesh);
    const bool divisible = type.rank > 0 && type.dims[0].extent % devices_along(rest, mesh) == 0;
    if (cut && divisible && type.dims[0].extent > 1) type.dims[0].axes = rest;
    inputs.push_back(marked_input(g, type, marks[i], axes));
    const bool parts = marks[i] == mark::unreduced;
    b.scale.resize(g.parameters.size(), parts ? static_cast<double>(devices_in(axes, mesh)) : 1.0);
    if (is_floating(type.type)) wrt.push_back(inputs.back().id);
  }
  try {
    b.y = c.build(inputs, nullptr);
    const aval type = without_marks(b.y.type());
    const mark weight = b.y.type().reduced != 0     ? mark::unreduced
                        : b.y.type().unreduced != 0 ? mark::reduced
                                                    : mark::none;
    const auto weighted = static_cast<axis_set>(b.y.type().reduced | b.y.type().unreduced);
    const value w = marked_input(g, type, weight, weighted);
    const value loss = graph::unmarked(graph::sum(b.y * w));
    g.outputs = {{b.y.id, -1}, {loss.id, -1}};
    for (int id : transform::gradients(g, loss.id, wrt)) g.outputs.push_back({id, -1});
    for (std::size_t i = 0; i < wrt.size(); ++i)
      REQUIRE(g.type(g.outputs[i + 2].node) == cotangent_type(g.type(wrt[i])));
    b.legal = g.fault.what == message::none;
  } catch (const std::logic_error&) {
    b.legal = false;
  }
  return b;
}

inline void fill_marked(built& b, const op_case& c) {
  std::mt19937 bits(7);
  b.scale.resize(b.p.g.parameters.size(), 1.0);
  for (std::size_t i = 0; i < b.p.g.parameters.size(); ++i) {
    const aval& type = b.p.g.type(b.p.g.parameters[i]);
    const input from = i < c.inputs.size() ? c.inputs[i] : input{{}, 1, 4, true};
    std::vector<double> numbers = draw(from, type.size(), bits);
    for (double& x : numbers) x /= b.scale[i];
    b.p.inputs.push_back(to_bytes(numbers, type.type));
  }
}

inline std::string text_of_marks(std::span<const mark> marks) {
  std::string text;
  for (mark m : marks) text += m == mark::none ? " -" : m == mark::reduced ? " R" : " U";
  return text;
}

/// A product forgets that an operand is reduced; everything else keeps it, and then moves nothing but the loss.
inline void check_all_reduced(const op_case& c, const built& b) {
  if (c.name.find("product") != c.name.npos || c.name.find("vector") != c.name.npos ||
      c.name.find("convolution") != c.name.npos || c.name.find("rows of") != c.name.npos ||
      c.name.find("batch") != c.name.npos)
    return;
  REQUIRE(b.legal);
  const auto moved = analysis::summarise(transform::lower(b.p.g), b.p.g.mesh).collectives;
  CHECK(moved.all_reduce <= 1);
  CHECK(moved.all_gather + moved.reduce_scatter + moved.all_to_all + moved.collective_permute == 0);
}

/// Every choice of marks for the floating-point operands. Returns how many of them are legal. The kernel of whole
/// softmax rows is written only where the rule, which refuses a pending sum, was asked.
inline int check_marks_of(const op_case& c, const mesh_value& mesh, axis_set axes, bool cut) {
  const std::size_t n = c.inputs.size();
  const bool nonlinear = c.name.find("softmax") != c.name.npos;
  int legal = 0;
  for (int number = 0, all = static_cast<int>(std::pow(3, n)); number < all; ++number) {
    std::vector<mark> marks;
    bool possible = true;
    bool all_reduced = true;
    for (std::size_t i = 0, rest = static_cast<std::size_t>(number); i < n; ++i, rest /= 3) {
      marks.push_back(static_cast<mark>(rest % 3));
      const bool floating = is_floating(c.inputs[i].type);
      possible =
          possible && (floating || marks.back() == mark::none) && !(nonlinear && marks.back() == mark::unreduced);
      all_reduced = all_reduced && (!floating || marks.back() == mark::reduced);
    }
    if (!possible) continue;
    INFO(c.name << text_of_marks(marks) << " on " << mesh.devices() << " devices");
    built b = build_marked(c, mesh, marks, axes, cut);
    if (all_reduced && !cut) check_all_reduced(c, b);
    if (!b.legal) continue;
    ++legal;
    fill_marked(b, c);
    check_against_one_device(b.p, 1e-12);
  }
  return legal;
}

}  // namespace runtime_test
