// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/summary.hpp>
#include <tessera/transform/plan.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;

constexpr ts::analysis::summary of(const graph& g) { return ts::analysis::summarise(ts::transform::lower(g), g.mesh); }

constexpr ts::analysis::summary gathered() {
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {16, model}}));
  result(g, ts::graph::reshard(x, array({{8, 0}, {16, 0}})));
  return of(g);
}

constexpr ts::analysis::summary scattered() {
  graph g = over(data8);
  const ts::spec_value cut{1, {data}, {}};
  result(g, ts::graph::reduce(op::reduce_sum, parameter(g, array({{16, data}, {8, 0}})), 1, false, &cut));
  return of(g);
}

TEST_CASE("A collective counts with the bytes of its operand on one device") {
  CHECK_BOTH(gathered().collectives.all_gather == 2);
  CHECK_BOTH(gathered().collectives.all_gather_bytes == 4 * (4 * 4) + 4 * (8 * 4));
  CHECK_BOTH(scattered().collectives.reduce_scatter == 1);
  CHECK_BOTH(scattered().collectives.reduce_scatter_bytes == 4 * 8);
  CHECK_BOTH(scattered().collectives.all_reduce == 0);
}

constexpr ts::analysis::summary batched_product() {
  graph g = over(grid);
  const value x = parameter(g, array({{4, data}, {8, 0}, {16, 0}}));
  const value w = parameter(g, array({{4, data}, {16, 0}, {32, model}}));
  result(g, product(x, w));
  return of(g);
}

constexpr ts::analysis::summary elementwise() {
  graph g = over(data8);
  const value x = parameter(g, array({{64, data}}));
  result(g, ts::graph::unary(op::exp, x * 2.0 + 1.0));
  return of(g);
}

TEST_CASE("Work is that of one device: 2 m n k for each matrix of a product, 1 an element elsewhere") {
  CHECK_BOTH(batched_product().cost.flops == 2 * (2 * 8 * 8 * 16));
  CHECK_BOTH(elementwise().cost.flops == 2 * 8);
  CHECK_BOTH(elementwise().cost.transcendentals == 8);
  CHECK_BOTH(elementwise().cost.bytes_accessed == 4 * (8 + 8) + 4 + 4);  // x, the result, two constants
}

TEST_CASE("Memory is that of one device's blocks") {
  CHECK_BOTH(batched_product().memory.argument_size_in_bytes == 4 * (2 * 8 * 16 + 2 * 16 * 8));
  CHECK_BOTH(batched_product().memory.output_size_in_bytes == 4 * 2 * 8 * 8);
  CHECK_BOTH(batched_product().memory.alias_size_in_bytes == 0);
  CHECK_BOTH(batched_product().memory.temp_size_in_bytes == 0);
}
