// SPDX-License-Identifier: Apache-2.0
// Weights of attention are not kept from the forward to the backward part of a graph: graph in, graph with a second
// softmax of the same scores before the first node that needs it for a gradient.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/graph/graph.hpp>
#include <tessera/transform/cheap.hpp>
#include <tessera/transform/row_steps.hpp>

#include <algorithm>

namespace tessera::transform {

/// Weights of at least so many bytes are made twice: more than a cache keeps from the forward to the backward part.
inline constexpr std::int64_t large_weights = std::int64_t{1} << 22;

/// The pass's state. A softmax of scores, which elementwise operations may have masked or scaled, is remade if products
/// read it along its rows (attention's result) as well as across them or for its gradient, and nobody else does: then
/// both parts go over blocks of rows, and it never is in memory.
struct weight_remaker {
  const graph::graph& g;
  graph::list<int> chosen{};       ///< softmax nodes that are made twice,
  graph::list<int> first_later{};  ///< and of each the first node that reads it for a gradient
  graph::list<int> remade{};       ///< by node: where its second form is in the result, or -1
  graph::list<int> place{};        ///< by node: where it is in the result
  graph::graph result{};

  constexpr explicit weight_remaker(const graph::graph& from) : g(from) {}

  /// Whether anything is to be made twice.
  constexpr bool found_some() {
    for (int i = 0; i < g.size(); ++i)
      if (g.at(i).code == op::softmax && g.type(i).bytes() >= large_weights && from_scores(g.at(i).operands[0]))
        look_at(i);
    return !chosen.empty();
  }

  constexpr bool is_scores(int id) const {
    const graph::node& n = g.at(id);
    if (n.code != op::dot || !is_light(g, id) || (n.type.type != dtype::f32 && n.type.type != dtype::f64)) return false;
    std::int64_t heads = 1;
    for (int d = 0; d < sharding::dim_count(n.attribute[2]); ++d) heads *= n.type.dims[d].extent;
    return heads >= fewest_summed_batches;
  }

  /// Whether `id` is made from scores by elementwise operations on arrays of their shape.
  constexpr bool from_scores(int id, int depth = 0) const {
    constexpr int deepest = 6;
    const graph::node& n = g.at(id);
    if (is_scores(id)) return true;
    if (depth > deepest || !(is(n.code, graph::op_kind::elementwise) || n.code == op::reshape)) return false;
    for (int k = 0; k < n.operand_count(); ++k)
      if (g.type(n.operands[k]).size() == n.type.size() && from_scores(n.operands[k], depth + 1)) return true;
    return false;
  }

  /// Whether a product contracts an operand along its last dimension, one row at a time.
  static constexpr bool reads_rows(const graph::node& n, const aval& weights) {
    return sharding::dim_count(n.attribute[0]) == 1 && sharding::dim_at(n.attribute[0], 0) == weights.rank - 1;
  }

  /// Looks at who reads the weights.
  constexpr void look_at(int weights) {
    bool forward = false, others = false;
    int later = -1;
    graph::list<int> names{weights};
    for (int i = weights + 1; i < g.size(); ++i) {
      const graph::node& n = g.at(i);
      graph::for_each_read(g, i, [&](int operand) {
        if (std::find(names.begin(), names.end(), operand) == names.end()) return;
        if (n.code == op::reshape) names.push_back(i);
        else if (n.code == op::dot && n.operands[0] == operand && reads_rows(n, g.type(operand))) forward = true;
        else if (n.code == op::dot || (n.code == op::softmax_grad && n.operands[0] == operand))
          later = later < 0 ? i : later;
        else others = true;
      });
    }
    for (const graph::output& o : g.outputs) others |= std::find(names.begin(), names.end(), o.node) != names.end();
    if (!forward || later < 0 || others) return;
    chosen.push_back(weights);
    first_later.push_back(later);
  }

  constexpr int placed(int id) const {
    const auto at = static_cast<std::size_t>(id);
    return remade[at] >= 0 ? remade[at] : place[at];
  }

  /// Makes node `id`, which is made from scores, once more.
  constexpr int remake(int id) {
    const auto at = static_cast<std::size_t>(id);
    if (remade[at] >= 0) return remade[at];
    graph::node n = g.at(id);
    for (int k = 0; k < n.operand_count(); ++k)
      n.operands[k] = !is_scores(id) && from_scores(n.operands[k]) ? remake(n.operands[k]) : placed(n.operands[k]);
    return remade[at] = result.add(n);
  }

  /// Makes weights and their views once more, for what reads them from node `later` on.
  constexpr void remake_for(int weights, int later) {
    remake(weights);
    for (int i = weights + 1; i < later; ++i)
      if (g.at(i).code == op::reshape && remade[static_cast<std::size_t>(g.at(i).operands[0])] >= 0) remake(i);
  }

  constexpr graph::graph run() {
    remade.resize(g.nodes.size(), -1);
    place.resize(g.nodes.size(), -1);
    result.mesh = g.mesh;
    result.bodies = g.bodies;
    for (int i = 0; i < g.size(); ++i) {
      for (std::size_t w = 0; w < chosen.size(); ++w)
        if (first_later[w] == i) remake_for(chosen[w], i);
      graph::node n = g.at(i);
      for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = placed(n.operands[k]);
      place[static_cast<std::size_t>(i)] = result.add(n);
      if (n.code == op::parameter) result.parameters.push_back(result.size() - 1);
    }
    for (const graph::output& o : g.outputs)
      result.outputs.push_back({place[static_cast<std::size_t>(o.node)], o.alias});
    return result;
  }
};

}  // namespace tessera::transform
