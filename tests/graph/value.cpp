// SPDX-License-Identifier: Apache-2.0
#include <tessera/graph/value.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;

constexpr bool sums_have_the_joined_type() {
  graph g = over(grid);
  const value a = parameter(g, array({{8, data}, {16, 0}}));
  const value b = parameter(g, array({{16, model}}));
  const value c = a + b;
  return c.type() == array({{8, data}, {16, model}}) && g.at(g.at(c.id).operands[1]).code == op::reshape &&
         g.type(g.at(c.id).operands[1]) == array({{1, 0}, {16, model}});
}

constexpr bool comparisons_are_bool() {
  graph g = over(data8);
  const value a = parameter(g, array({{8, data}}));
  return ts::graph::binary(op::lt, a, a * 2.0).type() == array({{8, data}}, ts::bool_);
}

TEST_CASE("Values join as the rules say; operands are padded to the result's rank, scalars stay") {
  CHECK_BOTH(sums_have_the_joined_type());
  CHECK_BOTH(comparisons_are_bool());
}

constexpr bool numbers_are_constants_of_the_arrays_dtype() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}, ts::f64));
  const value b = 2.0 / (1.0 - (a * 3.0 + 4.0) / 5.0);
  int constants = 0;
  for (const ts::graph::node& n : g.nodes)
    if (n.code == op::constant) {
      if (!(n.type == ts::scalar_aval(ts::f64))) return false;
      ++constants;
    }
  return constants == 5 && b.type() == a.type();
}

TEST_CASE("Numbers beside an array become constants of its dtype") {
  CHECK_BOTH(numbers_are_constants_of_the_arrays_dtype());
}

constexpr bool what_changes_nothing_writes_nothing() {
  graph g = over(data8);
  const value a = parameter(g, array({{8, data}, {4, 0}}));
  ts::graph::reshape(a, a.type());
  ts::graph::reshard(a, a.type());
  ts::graph::convert(a, ts::f32);
  ts::graph::transpose(a, dims({0, 1}));
  ts::graph::broadcast(a, a.type(), dims({0, 1}));
  ts::graph::reduce(op::reduce_sum, a, 0, false);
  return g.size() == 1;
}

TEST_CASE("What changes nothing writes no node") { CHECK_BOTH(what_changes_nothing_writes_nothing()); }

constexpr bool reductions_and_moves_are_typed() {
  graph g = over(grid);
  const value a = parameter(g, array({{8, data}, {4, model}}));
  return ts::graph::sum(a).type() == ts::scalar_aval(ts::f32) &&
         ts::graph::reduce(op::reduce_max, a, 1, true).type() == array({{1, 0}, {4, model}}) &&
         ts::graph::transpose(a, dims({1, 0})).type() == array({{4, model}, {8, data}}) &&
         ts::graph::full(&g, array({{8, data}}), 3).type() == array({{8, data}}) &&
         ts::graph::convert(a, ts::i32).type() == array({{8, data}, {4, model}}, ts::i32);
}

TEST_CASE("Reductions, transposes, conversions and filled arrays have the types of their rules") {
  CHECK_BOTH(reductions_and_moves_are_typed());
}

TEST_CASE("A broken rule is an exception, not a graph") {
  graph g = over(data8);
  const value a = parameter(g, array({{8, data}}));
  const value b = parameter(g, array({{4, 0}}));
  CHECK_THROWS_AS(a + b, std::logic_error);
  CHECK_THROWS_AS(ts::graph::transpose(a, dims({1})), std::logic_error);
}
