// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/grad.hpp>
#include <tessera/transform/partition.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;

struct moves {
  int all_reduce = 0;
  int all_gather = 0;
  int reduce_scatter = 0;
  int local_slice = 0;
  int all_to_all = 0;
  int permute = 0;
  friend constexpr bool operator==(const moves&, const moves&) = default;
};

constexpr moves moves_of(const graph& g) {
  const graph local = ts::transform::partition(ts::transform::simplify(g));
  return {count(local, op::all_reduce),  count(local, op::all_gather), count(local, op::reduce_scatter),
          count(local, op::local_slice), count(local, op::all_to_all), count(local, op::permute)};
}

/// Adds the gradient of the sum of `y * y`, and nothing else, as result.
constexpr moves moves_of_gradient(graph& g, value y, value wrt) {
  const int ids[] = {wrt.id};
  const int loss = ts::graph::sum(ts::graph::unary(op::square, y)).id;
  result(g, {&g, ts::transform::gradients(g, loss, ids)[0]});
  return moves_of(g);
}

constexpr moves data_parallel(bool backward) {
  graph g = over(data8);
  const value x = parameter(g, array({{16, data}, {32, 0}}));
  const value w = parameter(g, array({{32, 0}, {4, 0}}));
  const value y = product(x, w);
  if (backward) return moves_of_gradient(g, y, w);
  result(g, y);
  return moves_of(g);
}

TEST_CASE("Data parallel: nothing forward, one all-reduce for a weight's gradient") {
  CHECK_BOTH(data_parallel(false) == moves{});
  CHECK_BOTH(data_parallel(true) == moves{.all_reduce = 1});
}

constexpr moves column_parallel(int result_number) {
  graph g = over(grid);
  const value x = parameter(g, array({{16, 0}, {32, 0}}));
  const value w = parameter(g, array({{32, 0}, {8, model}}));
  const value y = product(x, w);
  if (result_number == 1) return moves_of_gradient(g, y, x);
  if (result_number == 2) return moves_of_gradient(g, y, w);
  result(g, y);
  return moves_of(g);
}

TEST_CASE("Column-parallel: nothing forward or for the weight, one all-reduce for the input's gradient") {
  CHECK_BOTH(column_parallel(0) == moves{});
  CHECK_BOTH(column_parallel(1) == moves{.all_reduce = 1});
  CHECK_BOTH(column_parallel(2) == moves{});
}

constexpr moves row_parallel(ts::aval out, int result_number) {
  graph g = over(grid);
  const value x = parameter(g, array({{16, 0}, {32, model}}));
  const value w = parameter(g, array({{32, model}, {8, 0}}));
  const value y = product(x, w, out);
  if (result_number == 1) return moves_of_gradient(g, y, x);
  result(g, y);
  return moves_of(g);
}

TEST_CASE("Row-parallel: one all-reduce forward, a reduce-scatter if the axis is wanted on the result") {
  CHECK_BOTH(row_parallel(array({{16, 0}, {8, 0}}), 0) == moves{.all_reduce = 1});
  CHECK_BOTH(row_parallel(array({{16, model}, {8, 0}}), 0) == moves{.reduce_scatter = 1});
  CHECK_BOTH(row_parallel(array({{16, 0}, {8, model}}), 0) == moves{.reduce_scatter = 1});
}

TEST_CASE("Row-parallel: the backward pass of an all-reduce moves nothing more") {
  CHECK_BOTH(row_parallel(array({{16, 0}, {8, 0}}), 1) == moves{.all_reduce = 1});
}

constexpr moves fully_sharded(bool backward) {
  graph g = over(data8);
  const value x = parameter(g, array({{16, data}, {32, 0}}));
  const value w = parameter(g, array({{32, data}, {4, 0}}));
  const value y = product(x, ts::graph::reshard(w, array({{32, 0}, {4, 0}})));
  if (backward) return moves_of_gradient(g, y, w);
  result(g, y);
  return moves_of(g);
}

TEST_CASE("FSDP by reshard: an all-gather forward, a reduce-scatter for the gradient") {
  CHECK_BOTH(fully_sharded(false) == moves{.all_gather = 1});
  CHECK_BOTH(fully_sharded(true) == moves{.all_gather = 1, .reduce_scatter = 1});
}

constexpr moves zipped(bool backward) {
  graph g = over(data8);
  const value a = parameter(g, array({{16, data}}));
  const value b = parameter(g, array({{16, 0}}));
  if (backward) return moves_of_gradient(g, a * b, b);
  result(g, a * b);
  return moves_of(g);
}

constexpr moves repeated(bool backward) {
  graph g = over(data8);
  const value a = parameter(g, array({{16, data}, {4, 0}}));
  const value b = parameter(g, array({{4, 0}}));
  if (backward) return moves_of_gradient(g, a + b, b);
  result(g, a + b);
  return moves_of(g);
}

TEST_CASE(
    "A whole operand beside a cut one: a local slice forward, an all-gather backward; a repeated one: an all-reduce") {
  CHECK_BOTH(zipped(false) == moves{.local_slice = 1});
  CHECK_BOTH(zipped(true) == moves{.all_gather = 1, .local_slice = 1});
  CHECK_BOTH(repeated(false) == moves{});
  CHECK_BOTH(repeated(true) == moves{.all_reduce = 1});
}

constexpr moves used_whole_many_times() {
  graph g = over(data8);
  const value w = parameter(g, array({{32, data}}));
  const ts::aval whole = array({{32, 0}});
  for (int i = 0; i < 4; ++i) result(g, ts::graph::reshard(w, whole) * static_cast<double>(i + 2));
  result(g, ts::graph::unary(op::exp, ts::graph::reshard(w, whole)));
  return moves_of(g);
}

constexpr moves used_in_two_forms() {
  graph g = over(data8);
  const value x = parameter(g, array({{16, data}, {8, 0}}));
  const value s = ts::graph::reduce(op::reduce_sum, x, 1, false);
  const ts::aval cut = array({{8, data}});
  for (int i = 0; i < 3; ++i) result(g, ts::graph::reshard(s, cut) * static_cast<double>(i + 2));
  result(g, s * 5.0);
  return moves_of(g);
}

TEST_CASE("A value is moved at most once into each form") {
  CHECK_BOTH(used_whole_many_times() == moves{.all_gather = 1});
  CHECK_BOTH(used_in_two_forms() == moves{.all_reduce = 1, .local_slice = 1});
}

constexpr moves resharded(const ts::mesh_value& mesh, const ts::aval& from, const ts::aval& to) {
  graph g = over(mesh);
  result(g, ts::graph::reshard(parameter(g, from), to) * 2.0);
  return moves_of(g);
}

TEST_CASE(
    "reshard: whole to cut is a slice, cut to whole an all-gather, from one dimension to another an all-to-all, in another order a permutation") {
  CHECK_BOTH(resharded(data8, array({{8, 0}}), array({{8, data}})) == moves{.local_slice = 1});
  CHECK_BOTH(resharded(data8, array({{8, data}}), array({{8, 0}})) == moves{.all_gather = 1});
  CHECK_BOTH(resharded(data8, array({{8, data}, {8, 0}}), array({{8, 0}, {8, data}})) == moves{.all_to_all = 1});
  CHECK_BOTH(resharded(grid, array({{8, data_model}}), array({{8, data}})) == moves{.all_gather = 1});
  CHECK_BOTH(resharded(grid, array({{8, data}}), array({{8, data_model}})) == moves{.local_slice = 1});
  CHECK_BOTH(resharded(grid, array({{8, data_model}}), array({{8, ts::axis_append(model, 0)}})) == moves{.permute = 1});
}

constexpr ts::transform::combine kind_of_maximum() {
  graph g = over(data8);
  result(g, ts::graph::reduce(op::reduce_max, parameter(g, array({{16, data}})), 1, false));
  const graph local = ts::transform::partition(g);
  for (const ts::graph::node& n : local.nodes)
    if (n.code == op::all_reduce) return static_cast<ts::transform::combine>(n.attribute[1]);
  return ts::transform::combine::sum;
}

constexpr moves summed_to_a_cut() {
  graph g = over(data8);
  const ts::spec_value cut{1, {data}, {}};
  result(g, ts::graph::reduce(op::reduce_sum, parameter(g, array({{16, data}, {8, 0}})), 1, false, &cut));
  return moves_of(g);
}

TEST_CASE("Reducing a cut dimension: an all-reduce of that kind, a reduce-scatter where the axis comes back") {
  CHECK_BOTH(kind_of_maximum() == ts::transform::combine::max);
  CHECK_BOTH(summed_to_a_cut() == moves{.reduce_scatter = 1});
}

constexpr bool blocks_are_local() {
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {16, 0}}));
  const value w = parameter(g, array({{16, 0}, {32, model}}));
  result(g, ts::graph::unary(op::relu, product(x, w)));
  const graph local = ts::transform::partition(g);
  const ts::aval& type = local.type(local.outputs[0].node);
  ts::aval block = array({{4, 0}, {8, 0}});
  block.varying = 0b11;
  return type == block && local.type(local.parameters[0]).varying == 0b01 &&
         local.type(local.parameters[1]).varying == 0b10;
}

TEST_CASE("After partitioning, types are blocks, and say over which axes blocks differ") {
  CHECK_BOTH(blocks_are_local());
}

constexpr moves along_one_device(bool gather) {
  graph g = over(thin);
  const value x = parameter(g, array({{8, 0}, {16, model}}));
  const value w = parameter(g, array({{16, model}, {4, 0}}));
  if (gather) result(g, ts::graph::reshard(x, array({{8, 0}, {16, 0}})) * 2.0);
  else result(g, product(x, w, array({{8, 0}, {4, 0}})) * 2.0);
  return moves_of(g);
}

TEST_CASE("Along an axis of size 1 nothing is moved") {
  CHECK_BOTH(along_one_device(false) == moves{});
  CHECK_BOTH(along_one_device(true) == moves{});
}

constexpr moves both_use_an_axis() {
  graph g = over(data8);
  const value a = parameter(g, array({{8, data}, {16, 0}}));
  const value b = parameter(g, array({{16, 0}, {8, data}}));
  result(g, product(a, b, array({{8, data}, {8, 0}})));
  return moves_of(g);
}

constexpr moves whole_operands_cut_result() {
  graph g = over(grid);
  const value a = parameter(g, array({{8, 0}, {16, 0}}));
  const value b = parameter(g, array({{16, 0}, {8, 0}}));
  result(g, product(a, b, array({{8, data}, {8, model}})));
  return moves_of(g);
}

TEST_CASE("A product whose result's cut is chosen gathers only what conflicts, and multiplies only what is wanted") {
  CHECK_BOTH(both_use_an_axis() == moves{.all_gather = 1});
  CHECK_BOTH(whole_operands_cut_result() == moves{.local_slice = 2});
}
