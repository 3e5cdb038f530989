// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/simplify.hpp>

#include "transform/support.hpp"

#include <limits>

namespace ts = tessera;
using namespace support;
using ts::transform::simplify;

constexpr bool equal_nodes_become_one() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}));
  const value b = parameter(g, array({{8, 0}}));
  result(g, (a + b) * (a + b));
  const graph s = simplify(g);
  return s.size() == 4 && count(s, op::add) == 1 && s.at(3).operands[0] == 2 && s.at(3).operands[1] == 2;
}

constexpr bool what_differs_stays_apart() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}, {8, 0}}));
  const value rows = ts::graph::reduce(op::reduce_sum, a, 0b01, false);
  const value columns = ts::graph::reduce(op::reduce_sum, a, 0b10, false);
  const value most = ts::graph::reduce(op::reduce_max, a, 0b10, false);
  result(g, rows + columns + most + (rows - columns) + (columns - rows));
  const graph s = simplify(g);
  return count(s, op::reduce_sum) == 2 && count(s, op::reduce_max) == 1 && count(s, op::sub) == 2;
}

TEST_CASE("Nodes that compute the same become one, others do not") {
  CHECK_BOTH(equal_nodes_become_one());
  CHECK_BOTH(what_differs_stays_apart());
}

constexpr bool zeros_of_either_sign_stay_apart() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}));
  for (int i = 0; i < 40; ++i) result(g, a * (i % 2 == 0 ? 0.0 : -0.0));
  const graph s = simplify(g);
  return count(s, op::constant) == 2 && count(s, op::mul) == 2 && s.outputs[0].node != s.outputs[1].node &&
         s.outputs[0].node == s.outputs[2].node;
}

TEST_CASE("0.0 and -0.0 are two constants") { CHECK_BOTH(zeros_of_either_sign_stay_apart()); }

constexpr bool dead_nodes_are_dropped() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}));
  const value unused = parameter(g, array({{4, 0}}));
  const value dead = ts::graph::unary(op::exp, unused * 2.0);
  result(g, a + 1.0, 0);
  const graph s = simplify(g);
  return dead.id > 0 && s.size() == 4 && s.parameters.size() == 2 && s.at(s.parameters[1]).code == op::parameter &&
         count(s, op::exp) == 0 && s.outputs.size() == 1 && s.outputs[0].alias == 0;
}

constexpr bool a_check_is_never_dead() {
  graph g = over(one);
  const value labels = parameter(g, array({{8, 0}}, ts::i32));
  const value a = parameter(g, array({{8, 0}}));
  ts::graph::write(&g, op::check_range, labels.type(), {labels.id});
  result(g, -a);
  return count(simplify(g), op::check_range) == 1;
}

TEST_CASE("What no result and no check needs is dropped; arguments stay") {
  CHECK_BOTH(dead_nodes_are_dropped());
  CHECK_BOTH(a_check_is_never_dead());
}

constexpr bool identities_vanish() {
  graph g = over(data8);
  const value a = parameter(g, array({{8, data}, {4, 0}}));
  value v = ts::graph::unary(op::stop_gradient, a);
  v = ts::graph::write(&g, op::reshape, a.type(), {v.id});
  v = ts::graph::write(&g, op::reshard, a.type(), {v.id});
  v = ts::graph::write(&g, op::convert, a.type(), {v.id});
  result(g, -v);
  const graph s = simplify(g);
  return s.size() == 2 && s.at(1).code == op::neg && s.at(1).operands[0] == 0;
}

constexpr bool a_reshard_that_moves_stays() {
  graph g = over(data8);
  const value a = parameter(g, array({{8, data}}));
  result(g, ts::graph::reshard(a, array({{8, 0}})));
  return count(simplify(g), op::reshard) == 1;
}

constexpr bool reshapes_in_a_row_are_one() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}));
  const value wide = ts::graph::reshape(ts::graph::reshape(a, array({{2, 0}, {4, 0}})), array({{4, 0}, {2, 0}}));
  const value back = ts::graph::reshape(wide, array({{8, 0}}));
  result(g, -wide);
  result(g, -back);
  const graph s = simplify(g);
  return count(s, op::reshape) == 1 && s.at(s.outputs[1].node).operands[0] == 0;
}

TEST_CASE("Nodes that only pass their operand on vanish") {
  CHECK_BOTH(identities_vanish());
  CHECK_BOTH(a_reshard_that_moves_stays());
  CHECK_BOTH(reshapes_in_a_row_are_one());
}

constexpr ts::graph::node folded(op code, double x, double y, ts::dtype type) {
  graph g = over(one);
  const value a = ts::graph::constant(&g, type, x);
  result(g, ts::graph::binary(code, a, ts::graph::constant(&g, type, y)));
  const graph s = simplify(g);
  return s.at(s.outputs[0].node);
}

constexpr bool folds_to(op code, double x, double y, ts::dtype type, double expected) {
  const ts::graph::node n = folded(code, x, y, type);
  return n.code == op::constant && n.value == expected && n.type == ts::scalar_aval(type);
}

TEST_CASE("Arithmetic of constants is done once, rounded as the element type rounds") {
  CHECK_BOTH(folds_to(op::mul, 2, 3.5, ts::f64, 7));
  CHECK_BOTH(folds_to(op::sub, 1, 4, ts::f32, -3));
  CHECK_BOTH(folds_to(op::div, 1, 3, ts::f64, 1.0 / 3.0));
  CHECK_BOTH(folds_to(op::div, 1, 3, ts::f32, static_cast<double>(1.0F / 3.0F)));
  CHECK_BOTH(folds_to(op::add, 0.1, 0.2, ts::f32, static_cast<double>(0.1F + 0.2F)));
  CHECK_BOTH(folds_to(op::add, 16777216, 1, ts::f32, 16777216));
  CHECK_BOTH(folds_to(op::add, 16777216, 1, ts::f64, 16777217));
}

TEST_CASE("What has no finite value, and integers, are left to the step") {
  CHECK_BOTH(folded(op::div, 1, 0, ts::f32).code == op::div);
  CHECK_BOTH(folded(op::mul, 3e38, 10, ts::f32).code == op::mul);
  CHECK_BOTH(folded(op::mul, 1e300, 1e300, ts::f64).code == op::mul);
  CHECK_BOTH(folded(op::add, 1e300, 1, ts::f32).code == op::add);
  CHECK_BOTH(
      folded(op::sub, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(), ts::f32).code ==
      op::sub);
  CHECK_BOTH(folded(op::add, 1, 2, ts::i32).code == op::add);
}

constexpr bool twice_is_once() {
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {16, 0}}));
  const value w = parameter(g, array({{16, 0}, {8, model}}));
  const value y = product(x, w);
  result(g, ts::graph::sum(ts::graph::unary(op::square, y - y * 1.0)));
  const graph s = simplify(g);
  return simplify(s).nodes == s.nodes;
}

TEST_CASE("Simplifying again changes nothing") { CHECK_BOTH(twice_is_once()); }
