// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/combine.hpp>
#include <tessera/transform/fuse.hpp>
#include <tessera/transform/materialise.hpp>
#include <tessera/transform/partition.hpp>
#include <tessera/transform/recompute.hpp>
#include <tessera/transform/schedule.hpp>

#include "transform/random_graph.hpp"

namespace ts = tessera;
using namespace support;

constexpr graph local_graph(const graph& trace) {
  return ts::transform::combine_all_reduces(
      ts::transform::materialise(ts::transform::partition(ts::transform::simplify(trace))));
}

constexpr int units_of(const graph& trace) {
  return static_cast<int>(ts::transform::fuse(local_graph(trace)).units.size());
}

constexpr void adam(graph& g, const ts::aval& type) {
  const value p = parameter(g, type);
  const value m = parameter(g, type);
  const value v = parameter(g, type);
  const value gradient = parameter(g, type);
  const value m_new = m * 0.9 + gradient * 0.1;
  const value v_new = v * 0.999 + ts::graph::unary(op::square, gradient) * 0.001;
  result(g, p - (m_new / (ts::graph::unary(op::sqrt, v_new) + 1e-8)) * 0.01, static_cast<int>(g.at(p.id).attribute[0]));
  result(g, m_new, static_cast<int>(g.at(m.id).attribute[0]));
  result(g, v_new, static_cast<int>(g.at(v.id).attribute[0]));
}

constexpr int units_of_adam(int arrays) {
  graph g = over(data8);
  for (int i = 0; i < arrays; ++i) adam(g, array({{16 + 8 * i, 0}, {32, 0}}));
  return units_of(g);
}

TEST_CASE("An Adam update is one pass over memory for each parameter") {
  CHECK_BOTH(units_of_adam(1) == 1);
  CHECK_BOTH(units_of_adam(3) == 3);
}

/// x read elementwise before and after a reduction of it: the two halves cannot run as one.
constexpr int units_around_a_reduction() {
  graph g = over(one);
  const value x = parameter(g, array({{8, 0}, {16, 0}}));
  const value e = ts::graph::unary(op::exp, x);
  result(g, e / ts::graph::reduce(op::reduce_sum, e, 2, true));
  return units_of(g);
}

constexpr int units_of_different_blocks() {
  graph g = over(data8);
  result(g, parameter(g, array({{16, data}})) * 2.0);
  result(g, parameter(g, array({{2, 0}})) * 2.0);
  return units_of(g);
}

constexpr int units_of_different_lanes() {
  graph g = over(one);
  const value x = parameter(g, array({{16, 0}}));
  const value y = parameter(g, array({{16, 0}}, ts::f64));
  result(g, x * 2.0);
  result(g, y * 2.0);
  return units_of(g);
}

TEST_CASE("What waits for a reduction, differs over other axes or has wider elements is a unit of its own") {
  CHECK_BOTH(units_around_a_reduction() == 3);
  CHECK_BOTH(units_of_different_blocks() == 2);
  CHECK_BOTH(units_of_different_lanes() == 2);
}

constexpr bool long_chains_are_cut() {
  graph g = over(one);
  value x = parameter(g, array({{16, 0}}));
  for (int i = 0; i < 100; ++i) x = ts::graph::unary(i % 2 == 0 ? op::exp : op::tanh, x);
  result(g, x);
  const ts::transform::fusion f = ts::transform::fuse(local_graph(g));
  for (const ts::transform::unit& u : f.units)
    if (u.nodes > ts::transform::max_fused_nodes || u.sources > ts::transform::max_fused_sources) return false;
  return f.units.size() == 3;
}

TEST_CASE("A unit has no more instructions than fit") { CHECK_BOTH(long_chains_are_cut()); }

constexpr bool a_group_is_one_unit() {
  graph g = over(data8);
  for (std::int64_t n : {16, 32, 64})
    result(g, ts::graph::reduce(op::reduce_sum, parameter(g, array({{n, data}})), 1, false));
  const graph local = local_graph(g);
  const ts::transform::fusion f = ts::transform::fuse(local);
  int units = 0;
  for (std::size_t u = 0; u < f.units.size(); ++u)
    if (local.at(f.units[u].first).code == op::all_reduce) units += f.units[u].nodes == 3 ? 1 : 10;
  return units == 1;
}

TEST_CASE("All-reduces of one group are one unit") { CHECK_BOTH(a_group_is_one_unit()); }

/// Whether the schedule has every unit once, each after those whose values it reads.
constexpr bool scheduled(const graph& local) {
  const ts::transform::fusion f = ts::transform::fuse(local);
  const auto order = ts::transform::schedule(
      local, f, ts::graph::list<ts::transform::piece_place>(local.nodes.size(), ts::transform::piece_place::elsewhere));
  if (order.size() != f.units.size()) return false;
  std::vector<int> place(f.units.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  if (std::find(place.begin(), place.end(), -1) != place.end()) return false;
  for (int i = 0; i < local.size(); ++i)
    for (int k = 0; k < local.at(i).operand_count(); ++k) {
      const int user = f.unit_number(i);
      const int made = f.unit_number(ts::transform::awaited_node(local, local.at(i).operands[k]));
      if (user < 0 || made < 0 || user == made) continue;
      if (place[static_cast<std::size_t>(made)] >= place[static_cast<std::size_t>(user)]) return false;
    }
  return true;
}

constexpr bool softmax_twice_is_scheduled() {
  graph g = over(data8);
  const value x = parameter(g, array({{8, data}, {16, 0}}));
  value y = x;
  for (int i = 0; i < 2; ++i) {
    const value e = ts::graph::unary(op::exp, y - ts::graph::reduce(op::reduce_max, y, 2, true));
    y = e / ts::graph::reduce(op::reduce_sum, e, 2, true) + x;
  }
  result(g, y);
  return scheduled(local_graph(g));
}

TEST_CASE("A unit comes after those it reads from") { CHECK_BOTH(softmax_twice_is_scheduled()); }

TEST_CASE("Units never wait in a ring: every unit of 600 random programs is scheduled") {
  int fused = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    const graph local = local_graph(random_graph(seed).trace);
    REQUIRE(scheduled(local));
    for (const ts::transform::unit& u : ts::transform::fuse(local).units) fused += u.nodes > 1;
  }
  CHECK(fused > 600);
}

/// Whether all values of a kernel have one width: a kernel for 8-byte numbers does not make 4-byte ones on the way.
constexpr bool wide_numbers_from_narrow_ones_keep_apart() {
  graph g = over(data8);
  ts::aval type = array({{8, data}, {16, 0}});
  type.type = ts::dtype::u32;
  const value x = parameter(g, type);
  const value wide = ts::graph::convert(x * x, ts::dtype::f64);
  result(g, ts::graph::unary(op::exp, wide * wide + wide));
  const ts::transform::fused_graph fused = ts::transform::fuse_and_recompute(local_graph(g));
  for (int i = 0; i < fused.g.size(); ++i) {
    const int unit = fused.f.unit_number(i);
    const int lanes = ts::transform::lanes_of(fused.g, i);
    if (unit >= 0 && lanes != 0 && lanes != fused.f.at(unit).lanes) return false;
  }
  return true;
}

TEST_CASE("Values are computed once more only in kernels of their own width") {
  CHECK_BOTH(wide_numbers_from_narrow_ones_keep_apart());
}
