// SPDX-License-Identifier: Apache-2.0
#include <tessera/graph/pack.hpp>
#include <tessera/transform/plan.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;

constexpr std::size_t room = 8192;

constexpr graph layer() {
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {16, 0}}));
  const value w = parameter(g, array({{16, 0}, {32, model}}));
  const value h = ts::graph::unary(op::tanh, product(x, w) * 0.1);
  result(g, ts::graph::sum(h));
  result(g, w - w * 1e-3, 1);
  return g;
}

constexpr bool same_graph(const graph& a, const graph& b) {
  if (a.outputs.size() != b.outputs.size()) return false;
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (a.outputs[i].node != b.outputs[i].node || a.outputs[i].alias != b.outputs[i].alias) return false;
  return a.nodes == b.nodes && a.parameters == b.parameters;
}

template <class Packed>
constexpr std::span<const std::int64_t> words_of(const Packed& p) {
  return {p.words.data(), static_cast<std::size_t>(p.total)};
}

constexpr bool a_graph_comes_back(const graph& g) {
  const auto words = ts::graph::pack<room>(g);
  return words.total <= static_cast<std::int64_t>(room) &&
         same_graph(g, ts::graph::unpack_graph(words_of(words), g.mesh));
}

constexpr bool pending_axes_come_back() {
  graph g = over(grid);
  ts::aval type = array({{8, 0}});
  type.varying = 1, type.unreduced = 2, type.reduced = 3;
  result(g, parameter(g, type));
  return a_graph_comes_back(g);
}

TEST_CASE("A graph comes back from its words as it was, before and after partitioning") {
  CHECK_BOTH(a_graph_comes_back(layer()));
  CHECK_BOTH(a_graph_comes_back(ts::transform::partition(layer())));
  CHECK_BOTH(a_graph_comes_back(graph{}));
  CHECK_BOTH(pending_axes_come_back());
}

constexpr bool a_program_comes_back() {
  const auto words = ts::graph::pack<room>(ts::transform::lower(layer()));
  const auto again = ts::graph::pack<room>(ts::graph::unpack_program(words_of(words)));
  return words.total > 100 && words.total == again.total && words.words == again.words;
}

TEST_CASE("A program comes back from its words as it was") { CHECK_BOTH(a_program_comes_back()); }

constexpr bool what_does_not_fit_is_counted() {
  const auto small = ts::graph::pack<16>(layer());
  const auto large = ts::graph::pack<room>(layer());
  for (std::size_t i = 0; i < 16; ++i)
    if (small.words[i] != large.words[i]) return false;
  return small.total == large.total && small.total > 16;
}

struct layer_source {
  static constexpr graph run() { return layer(); }
};

TEST_CASE("Words beyond the capacity are counted; a constant holds exactly as many as there are") {
  CHECK_BOTH(what_does_not_fit_is_counted());
  using constant = ts::graph::packed_constant<layer_source>;
  CHECK_BOTH(constant::words.size() == static_cast<std::size_t>(ts::graph::pack<room>(layer()).total));
  CHECK_BOTH(same_graph(layer(), ts::graph::unpack_graph(constant::words, grid)));
}
